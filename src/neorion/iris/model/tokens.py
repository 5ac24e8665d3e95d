"""Tokens: the file of a local controller's token, and the format of task tokens."""

from collections.abc import Mapping

_TASK = "task"


def token_file(env: Mapping[str, str], port: int) -> str:
    """Path of the token of a controller on this machine. Only its user can read it; clients use it by default."""
    home = env.get("XDG_STATE_HOME") or f"{env.get('HOME', '/')}/.local/state"
    return f"{home}/neorion/iris/{port}.token"


def task_token(attempt: str, secret: str) -> str:
    """Token with which an attempt authenticates: its id and its secret."""
    return f"{_TASK}.{attempt}.{secret}"


def parse_task_token(token: str) -> tuple[str, str] | None:
    """Attempt and secret of a task token, or None for a token of another kind."""
    kind, _, rest = token.partition(".")
    attempt, _, secret = rest.partition(".")
    return (attempt, secret) if kind == _TASK and attempt and secret else None
