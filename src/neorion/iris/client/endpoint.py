"""Endpoint of a client: the controller's URL, the token, and the prefix of job names."""

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
    """Controller and token of a client. `prefix` precedes job names without a leading "/"."""

    url: str
    token: str | None
    prefix: str


def resolve_endpoint(url: str | None, token: str | None, user: str, env: Mapping[str, str]) -> Endpoint:
    """Fills missing values from the environment. Inside a task it gives the task's own cluster and job."""
    resolved = (url or env.get("IRIS_CONTROLLER") or DEFAULT_URL).rstrip("/")
    in_task = _in_task(env)
    own_cluster = in_task and resolved == env["IRIS_CONTROLLER"]
    # The token of a task is only for its own controller, not for others that its code calls.
    given = token or (None if in_task and not own_cluster else env.get("IRIS_TOKEN"))
    stored = _stored_token(resolved, env)
    final = _with_pin(given, stored) if given else stored
    prefix = (
        f"/{user}" if user else env["IRIS_JOB_NAME"] if own_cluster else f"/{env.get('IRIS_USER') or _user()}"
    )
    return Endpoint(resolved, final, prefix)


def local_cluster_endpoint(url: str, env: Mapping[str, str]) -> Endpoint:
    """Endpoint of a local cluster. Its token is in a file; the token of the environment is for another cluster."""
    return resolve_endpoint(
        url, None, "", {name: value for name, value in env.items() if name != "IRIS_TOKEN"}
    )


def task_endpoint(env: Mapping[str, str]) -> Endpoint:
    if not _in_task(env):
        raise Invalid(
            "iris.not_in_task",
            "This process does not run in a task.",
            hint="Name a controller: IrisClient.remote(url).",
        )
    return resolve_endpoint(None, None, "", env)


def _in_task(env: Mapping[str, str]) -> bool:
    return all(
        env.get(name) for name in ("IRIS_ATTEMPT_UID", "IRIS_JOB_NAME", "IRIS_CONTROLLER", "IRIS_TOKEN")
    )


def _with_pin(token: str, stored: str | None) -> str:
    """Adds the pin of the stored token of a local controller to a token without a pin."""
    pin, secret = PinnedToken.parse(token)
    return str(PinnedToken(pin or PinnedToken.parse(stored).pin, secret))


def _stored_token(url: str, env: Mapping[str, str]) -> str | None:
    host, _, port = url.rpartition("/")[2].rpartition(":")
    if host not in ("localhost", "127.0.0.1", "[::1]") or not port.isdecimal():
        return None
    try:
        return Path(token_file(env, int(port))).read_text().strip() or None
    except OSError:
        return None


def _user() -> str:
    """Login name of the user, with the characters that are valid in a job name."""
    try:
        login = getpass.getuser()
    except (KeyError, OSError):
        login = ""
    return re.sub(r"[^A-Za-z0-9]+", "-", login).strip("-") or "somebody"
