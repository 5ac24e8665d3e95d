"""Encodes records as bytes, and decodes them."""

from functools import cache, lru_cache
from typing import Any, TypeVar

import msgspec

from neorion.iris.model.record import Attempt, AuditEntry, Job, Slice, Task, Worker

Record = Job | Task | Attempt | Worker | Slice | AuditEntry
R = TypeVar("R", Job, Task, Attempt, Worker, Slice, AuditEntry)


def _plain(value: object) -> str:
    """Encodes typed ids as strings."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no stored form")


# Rows are in the order of their keys, so successive tasks share a job id and often the name of their result.
@lru_cache(maxsize=1024)
def _typed(kind: type[Any], value: object) -> object:
    # Without `__new__`, because stored values were checked before.
    return str.__new__(kind, value)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain)


def encode(record: Record) -> bytes:
    return _ENCODER.encode(record)


@cache
def _decoder(kind: type[R]) -> msgspec.msgpack.Decoder[R]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_typed)


def decode(kind: type[R], body: bytes) -> R:
    return _decoder(kind).decode(body)
