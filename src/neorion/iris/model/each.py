"""The former name of `map_task`: pickles made before the renaming find their classes here. It goes with the next release."""

from neorion.iris.model.map_task import Args
from neorion.iris.model.map_task import MapTask as Each

__all__ = ["Args", "Each"]
