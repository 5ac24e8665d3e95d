"""The hash chain of an audit log: how a record is sealed, and whether a log is whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from neorion.devservers.model.audit import AuditRecord

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditRecord).decode


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: the number and the hash of its last record."""

    number: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that does not continue the chain, counted from 1."""

    line: int
    reason: str


def sealed(record: AuditRecord, head: Head) -> AuditRecord:
    """The record as the next one of the chain."""
    placed = replace(record, number=head.number + 1, previous=head.hash, hash="")
    return replace(placed, hash=_hash(placed))


def line_of(record: AuditRecord) -> bytes:
    return _encode(record) + b"\n"


def head_of(record: AuditRecord) -> Head:
    return Head(record.number, record.hash)


def parse(line: bytes) -> AuditRecord | None:
    """None for a line that is not a record."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def verify(lines: Iterable[bytes]) -> tuple[Head, list[Flaw]]:
    """The end of the chain, and every line that is edited, missing or out of its place.

    A log that was cut off at its end is whole in itself: compare its head with one that was noted before.
    """
    head, flaws = Head(), list[Flaw]()
    for number, line in enumerate(lines, start=1):
        record = parse(line)
        if record is None:
            flaws.append(Flaw(number, "It is not an audit record."))
            continue
        flaw = _flaw(record, head, first=number == 1)
        if flaw:
            flaws.append(Flaw(number, flaw))
        head = head_of(record)
    return head, flaws


def _flaw(record: AuditRecord, head: Head, *, first: bool) -> str:
    if _hash(replace(record, hash="")) != record.hash:
        return "It was edited."
    if first:
        # A log that was rotated goes on where the file before it ended.
        return ""
    if record.number != head.number + 1:
        return f"Record {head.number + 1} is missing or out of its place."
    return "" if record.previous == head.hash else "It does not follow the line before it."


def _hash(record: AuditRecord) -> str:
    return sha256(_encode(record)).hexdigest()
