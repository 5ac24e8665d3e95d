"""The former name of `client`: functions pickled before the renaming find its classes here. It goes with the next release."""

from neorion.iris.client.client import IrisClient, Job

__all__ = ["IrisClient", "Job"]
