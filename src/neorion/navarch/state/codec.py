"""Records as bytes and back."""

from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from neorion.navarch.model import (
    FailureStreak,
    HealthEvent,
    InstallationId,
    Node,
    PoolState,
    Purchase,
    Repair,
)


class Installation(Struct, frozen=True):
    """Id of this installation, and the secret that signs its nodes' tokens."""

    id: InstallationId
    secret: str


class HistoryEntry(Struct, frozen=True, omit_defaults=True):
    """One entry of a history: a stable word for machines, a sentence for people."""

    event: str
    sentence: str
    data: dict[str, str] = {}


Record = Node | Purchase | Repair | PoolState | FailureStreak | Installation
R = TypeVar("R", Node, Purchase, Repair, PoolState, FailureStreak, Installation, HealthEvent, HistoryEntry)


def _plain(value: object) -> str:
    """Typed ids are texts."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no stored form")


def _typed(kind: type[Any], value: object) -> object:
    # Past `__new__`: what is stored was checked when it came in.
    return str.__new__(kind, value)


_PACK = msgspec.msgpack.Encoder(enc_hook=_plain)
_TEXT = msgspec.json.Encoder(enc_hook=_plain)


def encode(record: Record) -> bytes:
    return _PACK.encode(record)


def to_text(line: HistoryEntry | HealthEvent) -> str:
    return _TEXT.encode(line).decode()


@cache
def _unpack(kind: type[R]) -> msgspec.msgpack.Decoder[R]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_typed)


@cache
def _read(kind: type[R]) -> msgspec.json.Decoder[R]:
    return msgspec.json.Decoder(kind, dec_hook=_typed)


def decode(kind: type[R], body: bytes) -> R:
    return _unpack(kind).decode(body)


def from_text(kind: type[R], text: str) -> R:
    return _read(kind).decode(text)
