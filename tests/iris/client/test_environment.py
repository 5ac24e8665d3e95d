"""An environment that jobs share, and what each of them adds."""

import os
from pathlib import Path

from neorion.iris.client import Environment, IrisClient


def _found() -> tuple[str, str, list[str]]:
    return os.environ["SHARED"], os.environ["OWN"], sorted(path.name for path in Path().iterdir())


def test_what_a_job_says_itself_is_added_to_the_environment_it_shares(client: IrisClient):
    shared: Environment = {"env": {"SHARED": "a", "OWN": "b"}, "setup": ["touch first"]}
    job = client.submit(_found, "adds", environment=shared, env={"OWN": "c"}, setup=["mv first second"])
    assert client.wait(job, timeout=60) == ("a", "c", ["second"])
    assert client.wait(client.submit(_found, "shares", environment=shared), timeout=60) == (
        "a",
        "b",
        ["first"],
    )
