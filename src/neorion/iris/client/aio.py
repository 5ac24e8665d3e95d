"""Former name of `async_client`, for functions pickled before the renaming. Removed in the next release."""

from neorion.iris.client.async_client import AsyncIrisClient

__all__ = ["AsyncIrisClient"]
