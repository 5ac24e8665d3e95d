"""One error, two forms: the family a program raises, and Connect's JSON. `answer` has the form for plain HTTP.

The detail message carries every field, so that the other side raises the very same error. An error without it (an older
server, a proxy, a foreign program) is understood by its Connect code, and one without a code by its HTTP status.
"""

import base64
import json
import struct
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct

from neorion.keel.base import (
    FAMILIES,
    Conflict,
    Deadline,
    Denied,
    Duration,
    Error,
    Invalid,
    NoCapacity,
    NotFound,
    QuotaExceeded,
    Retry,
    Terminal,
    Unauthenticated,
)
from neorion.keel.rpc import http_errors
from neorion.keel.rpc.gen.errors_pb import ErrorDetail

DETAIL_TYPE: Final = "neorion.keel.rpc.v1.ErrorDetail"
_NOT_OURS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_NS_PER_MS: Final = 1_000_000
_DURATION_MAX_MS: Final = (2**63 - 1) // _NS_PER_MS

# Each family's Connect code has the family's own HTTP status, so both kinds of client see the same number.
_CODES: Final[dict[type[Error], str]] = {
    Retry: "unavailable",
    Deadline: "deadline_exceeded",
    Conflict: "aborted",
    Terminal: "internal",
    NoCapacity: "unavailable",
    QuotaExceeded: "resource_exhausted",
    NotFound: "not_found",
    Denied: "permission_denied",
    Unauthenticated: "unauthenticated",
    Invalid: "invalid_argument",
}
_FAMILIES: Final[dict[str, type[Error]]] = {
    "canceled": Retry,
    "unknown": Terminal,
    "invalid_argument": Invalid,
    "deadline_exceeded": Deadline,
    "not_found": NotFound,
    "already_exists": Conflict,
    "permission_denied": Denied,
    "resource_exhausted": QuotaExceeded,
    "failed_precondition": Conflict,
    "aborted": Conflict,
    "out_of_range": Invalid,
    "unimplemented": Terminal,
    "internal": Terminal,
    "unavailable": Retry,
    "data_loss": Terminal,
    "unauthenticated": Unauthenticated,
}
# What Connect makes of the status of an answer that is not its own.
_STATUS_CODES: Final = {
    400: "internal",
    401: "unauthenticated",
    403: "permission_denied",
    404: "unimplemented",
    429: "unavailable",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}


def to_detail(error: Error) -> ErrorDetail:
    return ErrorDetail(
        family=error.family,
        code=http_errors.text(error.code),
        sentence=http_errors.text(error.sentence),
        hint=http_errors.text(error.hint),
        retry_after_ms=http_errors.retry_after_ms(error),
        scope=http_errors.scope(error),
    )


def from_detail(detail: ErrorDetail) -> Error:
    """The error as it was raised; an unknown family comes from a newer server and is final."""
    family = FAMILIES.get(detail.family, Terminal)
    if issubclass(family, Retry):
        known = detail.has_field("retry_after_ms")
        after = Duration(min(detail.retry_after_ms, _DURATION_MAX_MS) * _NS_PER_MS) if known else None
        return family(detail.code, detail.sentence, hint=detail.hint, after=after)
    if issubclass(family, NoCapacity | QuotaExceeded):
        return family(detail.code, detail.sentence, hint=detail.hint, scope=detail.scope)
    return family(detail.code, detail.sentence, hint=detail.hint)


def code_of(error: Error) -> str:
    """The Connect code of the error's family."""
    for family in type(error).__mro__:
        if family in _CODES:
            return _CODES[family]
    return "unknown"


def from_connect(code: str, message: str, details: Iterable[tuple[str, bytes]] = ()) -> Error:
    """The error that a Connect error stands for. A detail is the name of its type and its bytes."""
    for type_name, body in details:
        if type_name.rpartition("/")[2] == DETAIL_TYPE:
            try:
                return from_detail(ErrorDetail.from_binary(body))
            except ValueError:
                break
    family = _FAMILIES.get(code, Terminal)
    return family(f"rpc.{code}", message or f"The server says: {code}.")


class _Detail(Struct, frozen=True):
    type: str = ""
    value: str = ""


class _Connect(Struct, frozen=True):
    code: str = ""
    message: str = ""
    details: tuple[_Detail, ...] = ()


class _End(Struct, frozen=True):
    error: _Connect | None = None


def from_connect_body(status: int, body: bytes) -> Error:
    """The error of a unary answer. A body that is not Connect's comes from a proxy or a foreign server."""
    by_status = _STATUS_CODES.get(status, "unknown")
    try:
        found = msgspec.json.decode(body, type=_Connect)
    except _NOT_OURS:
        found = _Connect()
    return _from_json(found, by_status, f"The server answers with HTTP status {status}.")


def from_connect_end(body: bytes) -> Error | None:
    """The error with which a stream ended, from its last envelope."""
    try:
        error = msgspec.json.decode(body, type=_End).error
    except _NOT_OURS:
        return from_connect("internal", "The end of the stream cannot be read.")
    return None if error is None else _from_json(error, "unknown", "")


def _from_json(found: _Connect, code: str, message: str) -> Error:
    details = ((detail.type, _unpadded(detail.value)) for detail in found.details)
    return from_connect(found.code if found.code in _FAMILIES else code, found.message or message, details)


def _unpadded(value: str) -> bytes:
    """Base64 without its padding. What is not base64 reads as nothing, which is not a valid detail either."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return b"\xff"


def connect_body(error: Error) -> bytes:
    """Connect's JSON error, as a unary call returns it."""
    return json.dumps(_connect_json(error), ensure_ascii=False).encode()


def connect_end(error: Error) -> bytes:
    """Connect's last message of a stream that failed: flag 2, length, JSON."""
    data = json.dumps({"error": _connect_json(error)}, ensure_ascii=False).encode()
    return struct.pack(">BI", 2, len(data)) + data


def _connect_json(error: Error) -> dict[str, object]:
    value = base64.b64encode(to_detail(error).to_binary()).decode().rstrip("=")
    return {
        "code": code_of(error),
        "message": http_errors.text(error.sentence),
        "details": [{"type": DETAIL_TYPE, "value": value, "debug": http_errors.to_json(error)}],
    }
