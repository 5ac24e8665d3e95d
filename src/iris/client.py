"""The client, by the name users type."""

from neorion.iris.client import AsyncIrisClient, AsyncJob, IrisClient, Job, JobCancelled, JobFailed

__all__ = ["AsyncIrisClient", "AsyncJob", "IrisClient", "Job", "JobCancelled", "JobFailed"]
