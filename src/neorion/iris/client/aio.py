"""The former name of `async_client`: functions pickled before the renaming find its class here. It goes with the next release."""

from neorion.iris.client.async_client import AsyncIrisClient

__all__ = ["AsyncIrisClient"]
