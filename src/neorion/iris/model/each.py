"""Former name of `map_task`, for pickles made before the renaming. Removed in the next release."""

from neorion.iris.model.map_task import Args
from neorion.iris.model.map_task import MapTask as Each

__all__ = ["Args", "Each"]
