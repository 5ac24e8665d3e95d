"""One client in two forms: the same verbs with the same arguments, with asyncio and without; and the guide's own words run."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neorion.iris.client import AsyncIrisClient, AsyncJob, IrisClient, Job

GUIDE = Path(__file__).parents[3] / "docs/guides/iris.md"
# What only whoever builds on the client needs: raw calls, and blobs.
INNER = {
    "admitted",
    "at",
    "calls",
    "cluster",
    "ended",
    "ends",
    "get_blob",
    "hand_in",
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


@pytest.mark.timeout(240)
def test_the_examples_of_the_guide_run():
    examples = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
