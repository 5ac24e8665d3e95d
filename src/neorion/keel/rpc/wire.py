"""One error, two forms: the family a program raises, and the Connect error. `answer` has the form for plain HTTP.

The detail message carries every field, so that the other side raises the very same error. An error without it (an older
server, a proxy, a foreign program) is understood by its Connect code.
"""

import base64
import json
import struct
from typing import Final

from connectrpc.code import Code
from connectrpc.errors import ConnectError

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
from neorion.keel.rpc import answer
from neorion.keel.rpc.gen.errors_pb import ErrorDetail

_TYPE: Final = "neorion.keel.rpc.v1.ErrorDetail"
_NS_PER_MS: Final = 1_000_000
_DURATION_MAX_MS: Final = (2**63 - 1) // _NS_PER_MS

# Each family's Connect code has the family's own HTTP status, so both kinds of client see the same number.
_CODES: Final[dict[type[Error], Code]] = {
    Retry: Code.UNAVAILABLE,
    Deadline: Code.DEADLINE_EXCEEDED,
    Conflict: Code.ABORTED,
    Terminal: Code.INTERNAL,
    NoCapacity: Code.UNAVAILABLE,
    QuotaExceeded: Code.RESOURCE_EXHAUSTED,
    NotFound: Code.NOT_FOUND,
    Denied: Code.PERMISSION_DENIED,
    Unauthenticated: Code.UNAUTHENTICATED,
    Invalid: Code.INVALID_ARGUMENT,
}
_FAMILIES: Final[dict[Code, type[Error]]] = {
    Code.CANCELED: Retry,
    Code.UNKNOWN: Terminal,
    Code.INVALID_ARGUMENT: Invalid,
    Code.DEADLINE_EXCEEDED: Deadline,
    Code.NOT_FOUND: NotFound,
    Code.ALREADY_EXISTS: Conflict,
    Code.PERMISSION_DENIED: Denied,
    Code.RESOURCE_EXHAUSTED: QuotaExceeded,
    Code.FAILED_PRECONDITION: Conflict,
    Code.ABORTED: Conflict,
    Code.OUT_OF_RANGE: Invalid,
    Code.UNIMPLEMENTED: Terminal,
    Code.INTERNAL: Terminal,
    Code.UNAVAILABLE: Retry,
    Code.DATA_LOSS: Terminal,
    Code.UNAUTHENTICATED: Unauthenticated,
}


def to_detail(error: Error) -> ErrorDetail:
    return ErrorDetail(
        family=error.family,
        code=answer.text(error.code),
        sentence=answer.text(error.sentence),
        hint=answer.text(error.hint),
        retry_after_ms=answer.retry_after_ms(error),
        scope=answer.scope(error),
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


def to_connect(error: Error) -> ConnectError:
    return ConnectError(_code(error), answer.text(error.sentence), [to_detail(error)])


def from_connect(error: ConnectError) -> Error:
    for detail in error.details:
        if detail.type_name == _TYPE:
            try:
                message = ErrorDetail.from_binary(detail.message_bytes)
            except ValueError:
                break
            return from_detail(message)
    family = _FAMILIES[error.code]
    return family(f"rpc.{error.code.value}", error.message or f"The server says: {error.code.value}.")


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
        "code": _code(error).value,
        "message": answer.text(error.sentence),
        "details": [{"type": _TYPE, "value": value, "debug": answer.to_json(error)}],
    }


def _code(error: Error) -> Code:
    for family in type(error).__mro__:
        if family in _CODES:
            return _CODES[family]
    return Code.UNKNOWN
