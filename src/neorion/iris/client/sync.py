"""Former name of `client`, for functions pickled before the renaming. Removed in the next release."""

from neorion.iris.client.client import IrisClient, Job

__all__ = ["IrisClient", "Job"]
