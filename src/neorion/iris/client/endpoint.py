"""Where a client belongs: which controller, whose token, and below which name its jobs stand."""

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.iris.model.tokens import token_file
from neorion.keel.base import Invalid
from neorion.keel.rpc import PinnedToken

DEFAULT_URL: Final = "http://localhost:10000"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`prefix` is what stands before a job's name that does not begin with "/" itself."""

    url: str
    token: str | None
    prefix: str


def resolve_endpoint(url: str | None, token: str | None, user: str, env: Mapping[str, str]) -> Endpoint:
    """What is not said is found in the environment; inside of a task, that is the task's own cluster and job."""
    where = (url or env.get("IRIS_CONTROLLER") or DEFAULT_URL).rstrip("/")
    inside = _in_task(env)
    here = inside and where == env["IRIS_CONTROLLER"]
    # The token of a task is for its own controller, and for no other that its code may talk to.
    given = token or (None if inside and not here else env.get("IRIS_TOKEN"))
    left = _left_token(where, env)
    found = _with_pin(given, left) if given else left
    below = f"/{user}" if user else env["IRIS_JOB_NAME"] if here else f"/{env.get('IRIS_USER') or _user()}"
    return Endpoint(where, found, below)


def local_cluster_endpoint(url: str, env: Mapping[str, str]) -> Endpoint:
    """Of a cluster that we started: it left its token here, and that of the environment is for another."""
    return resolve_endpoint(
        url, None, "", {name: value for name, value in env.items() if name != "IRIS_TOKEN"}
    )


def task_endpoint(env: Mapping[str, str]) -> Endpoint:
    if not _in_task(env):
        raise Invalid(
            "iris.not_in_task",
            "This does not run inside of a task.",
            hint="Name a controller: IrisClient.remote(url).",
        )
    return resolve_endpoint(None, None, "", env)


def _in_task(env: Mapping[str, str]) -> bool:
    return all(
        env.get(name) for name in ("IRIS_ATTEMPT_UID", "IRIS_JOB_NAME", "IRIS_CONTROLLER", "IRIS_TOKEN")
    )


def _with_pin(token: str, left: str | None) -> str:
    """The token with its own pin, or with the one that a controller on this machine left for its clients."""
    pin, secret = PinnedToken.parse(token)
    return str(PinnedToken(pin or PinnedToken.parse(left).pin, secret))


def _left_token(url: str, env: Mapping[str, str]) -> str | None:
    host, _, port = url.rpartition("/")[2].rpartition(":")
    if host not in ("localhost", "127.0.0.1", "[::1]") or not port.isdecimal():
        return None
    try:
        return Path(token_file(env, int(port))).read_text().strip() or None
    except OSError:
        return None


def _user() -> str:
    """Whoever runs this, as the machine calls them, in the form of a name."""
    try:
        found = getpass.getuser()
    except (KeyError, OSError):
        found = ""
    return re.sub(r"[^A-Za-z0-9]+", "-", found).strip("-") or "somebody"
