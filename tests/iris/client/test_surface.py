"""One client in two forms: the same verbs with the same arguments, with asyncio and without."""

import inspect
from typing import Any

from neorion.iris.client import AsyncIrisClient, AsyncJob, IrisClient, Job

# What only whoever builds on the client needs: raw calls, and blobs.
INNER = {
    "check_admission",
    "at",
    "calls",
    "cluster",
    "ended",
    "ends",
    "get_blob",
    "submit_request",
    "named",
    "prepare",
    "put_blob",
    "send",
    "watch",
}


def public(kind: type[Any]) -> dict[str, list[str]]:
    """Each verb with the names of its arguments."""
    found = {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}
    return {
        {"aclose": "close"}.get(name, name): list(inspect.signature(value).parameters)
        for name, value in found.items()
        if callable(value) and name not in INNER
    }


def test_the_two_clients_have_the_same_verbs():
    assert public(AsyncIrisClient) == public(IrisClient)


def test_the_two_jobs_have_the_same_verbs():
    assert public(AsyncJob) == public(Job)
