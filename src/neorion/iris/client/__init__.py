"""The client of iris: submit work from Python, follow it, get its value back.

Uses the public RPC alone. Values of tasks are unpickled here and nowhere else outside of the task itself.
"""

from neorion.iris.client.aio import AsyncIrisClient
from neorion.iris.client.connection import AsyncJob
from neorion.iris.client.options import Environment, Options
from neorion.iris.client.result import JobCancelled, JobFailed
from neorion.iris.client.sync import IrisClient, Job
from neorion.iris.model.each import Args

__all__ = [
    "Args",
    "AsyncIrisClient",
    "AsyncJob",
    "Environment",
    "IrisClient",
    "Job",
    "JobCancelled",
    "JobFailed",
    "Options",
]
