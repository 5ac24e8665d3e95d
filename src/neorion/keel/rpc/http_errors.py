"""Errors for plain HTTP clients: a status and JSON. Does not import Connect, which few processes load."""

import json
from typing import Final, cast

from neorion.keel.base import Error, NoCapacity, QuotaExceeded, Retry, Terminal
from neorion.keel.telemetry import logger

log = logger(__name__)

_NS_PER_MS: Final = 1_000_000

# HTTP has a more specific status for these than their family's.
_STATUS: Final = {
    "rpc.method": 405,
    "rpc.slow_body": 408,
    "rpc.too_large": 413,
    "rpc.content_type": 415,
    "rpc.busy": 429,
}


def status(error: Error) -> int:
    return _STATUS.get(error.code, error.http_status)


def retry_after_ms(error: Error) -> int | None:
    """The wait in milliseconds, rounded up, so that no caller returns too early."""
    after = error.after if isinstance(error, Retry) else None
    return None if after is None else -(-after.ns // _NS_PER_MS)


def to_json(error: Error) -> dict[str, object]:
    """The JSON fields of an error; empty ones are omitted."""
    fields: dict[str, object] = {
        "family": error.family,
        "code": text(error.code),
        "sentence": text(error.sentence),
        "hint": text(error.hint),
        "retry_after_ms": retry_after_ms(error),
        "scope": scope(error),
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}


def plain_body(error: Error) -> bytes:
    return json.dumps(to_json(error), ensure_ascii=False).encode()


def scope(error: Error) -> str:
    return text(error.scope) if isinstance(error, NoCapacity | QuotaExceeded) else ""


def text(given: str) -> str:
    """Replaces what UTF-8 cannot encode, so that a file name with invalid bytes does not cause another error."""
    return given.encode("utf-8", "replace").decode()


def typed(error: Exception, correlation_id: str) -> Error:
    """The error to send: a typed one unchanged, any other as `rpc.internal` without details."""
    error = unwrapped(error)
    if isinstance(error, Error):
        return error
    log.failure("handler failed", error, correlation_id=correlation_id)
    return Terminal(
        "rpc.internal",
        "The server failed on this request.",
        hint=f"Look for {correlation_id} in the server's log.",
    )


def unwrapped(error: Exception) -> Exception:
    """The single error inside the group that a handler's task group raised."""
    if not isinstance(error, ExceptionGroup):
        return error
    group = cast("ExceptionGroup[Exception]", error)
    return unwrapped(group.exceptions[0]) if len(group.exceptions) == 1 else group
