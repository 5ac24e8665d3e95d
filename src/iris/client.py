"""The client, by the name users type."""

from typing import TYPE_CHECKING

from neorion.iris import client as _client

if TYPE_CHECKING:
    from neorion.iris.client import (
        Args,
        AsyncIrisClient,
        AsyncJob,
        Conflict,
        Deadline,
        Denied,
        Environment,
        Error,
        Invalid,
        IrisClient,
        Job,
        JobCancelled,
        JobFailed,
        NoCapacity,
        NotFound,
        Options,
        QuotaExceeded,
        Retry,
        Terminal,
        Unauthenticated,
        WaitTimeout,
    )

__all__ = [
    "Args",
    "AsyncIrisClient",
    "AsyncJob",
    "Conflict",
    "Deadline",
    "Denied",
    "Environment",
    "Error",
    "Invalid",
    "IrisClient",
    "Job",
    "JobCancelled",
    "JobFailed",
    "NoCapacity",
    "NotFound",
    "Options",
    "QuotaExceeded",
    "Retry",
    "Terminal",
    "Unauthenticated",
    "WaitTimeout",
]


def __getattr__(name: str) -> object:
    return getattr(_client, name)
