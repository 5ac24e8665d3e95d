"""The former name of `pickling`: pickles made before the renaming find its functions here. It goes with the next release."""

from neorion.iris.model.pickling import _cached, _cached_property  # pyright: ignore[reportPrivateUsage] -- pickles name them

__all__ = ["_cached", "_cached_property"]
