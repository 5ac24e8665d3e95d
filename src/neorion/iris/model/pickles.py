"""Former name of `pickling`, for pickles made before the renaming. Removed in the next release."""

from neorion.iris.model.pickling import _cached, _cached_property  # pyright: ignore[reportPrivateUsage] -- pickles name them

__all__ = ["_cached", "_cached_property"]
