"""What a plain HTTP client reads of an error: its status, and JSON. Knows nothing of Connect, which few processes load."""

import json
from typing import Final, cast

from neorion.keel.base import Error, NoCapacity, QuotaExceeded, Retry, Terminal
from neorion.keel.telemetry import logger

log = logger(__name__)

_NS_PER_MS: Final = 1_000_000

# HTTP has a closer word for these than their family's.
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
    """Rounded up: a caller must not come back before it is worth it."""
    after = error.after if isinstance(error, Retry) else None
    return None if after is None else -(-after.ns // _NS_PER_MS)


def to_json(error: Error) -> dict[str, object]:
    """What a plain HTTP client reads: the fields of the detail, empty ones left out."""
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
    """What UTF-8 can carry: a file name with broken bytes must not turn one error into another."""
    return given.encode("utf-8", "replace").decode()


def typed(error: Exception, correlation_id: str) -> Error:
    """The error to show: as it is if it is one of ours, else one that tells nothing of the inside."""
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
    """The one error inside what a task group of the handler raised."""
    if not isinstance(error, ExceptionGroup):
        return error
    group = cast("ExceptionGroup[Exception]", error)
    return unwrapped(group.exceptions[0]) if len(group.exceptions) == 1 else group
