"""The client, by the name users type."""

from neorion.iris.client import (
    Args,
    AsyncIrisClient,
    AsyncJob,
    Environment,
    IrisClient,
    Job,
    JobCancelled,
    JobFailed,
)

__all__ = [
    "Args",
    "AsyncIrisClient",
    "AsyncJob",
    "Environment",
    "IrisClient",
    "Job",
    "JobCancelled",
    "JobFailed",
]
