"""Client of iris: submit work from Python, follow it and fetch its value.

Uses only the public RPC. Outside of tasks, values are unpickled only here. Each name is imported when it is
first used.
"""

from typing import TYPE_CHECKING

from neorion.keel.base import lazy_exports

if TYPE_CHECKING:
    from neorion.iris.client.async_client import AsyncIrisClient
    from neorion.iris.client.client import IrisClient, Job
    from neorion.iris.client.connection import AsyncJob
    from neorion.iris.client.options import Environment, Options
    from neorion.iris.client.result import JobCancelled, JobFailed, WaitTimeout
    from neorion.iris.model.map_task import Args
    from neorion.keel.base import (
        Conflict,
        Deadline,
        Denied,
        Error,
        Invalid,
        NoCapacity,
        NotFound,
        QuotaExceeded,
        Retry,
        Terminal,
        Unauthenticated,
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

__getattr__ = lazy_exports(
    __name__,
    {
        "async_client": ("AsyncIrisClient",),
        "connection": ("AsyncJob",),
        "neorion.iris.model.map_task": ("Args",),
        "neorion.keel.base": (
            "Conflict",
            "Deadline",
            "Denied",
            "Error",
            "Invalid",
            "NoCapacity",
            "NotFound",
            "QuotaExceeded",
            "Retry",
            "Terminal",
            "Unauthenticated",
        ),
        "options": ("Environment", "Options"),
        "result": ("JobCancelled", "JobFailed", "WaitTimeout"),
        "client": ("IrisClient", "Job"),
    },
)
