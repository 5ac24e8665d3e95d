"""Tokens: where that of a controller on this machine lies, and the form of those that tasks show."""

from collections.abc import Mapping

_TASK = "task"


def token_file(env: Mapping[str, str], port: int) -> str:
    """The controller writes it, readable by its user alone; a client that is given no token looks here."""
    home = env.get("XDG_STATE_HOME") or f"{env.get('HOME', '/')}/.local/state"
    return f"{home}/neorion/iris/{port}.token"


def task_token(attempt: str, secret: str) -> str:
    """What an attempt shows: who it is, and the proof."""
    return f"{_TASK}.{attempt}.{secret}"


def parse_task_token(token: str) -> tuple[str, str] | None:
    """The attempt and the secret, or None if the token is of another kind."""
    kind, _, rest = token.partition(".")
    attempt, _, secret = rest.partition(".")
    return (attempt, secret) if kind == _TASK and attempt and secret else None
