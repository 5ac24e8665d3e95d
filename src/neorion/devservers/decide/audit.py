"""The hash chain of an audit log: records are sealed into it, and a log is checked for gaps and edits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from neorion.devservers.model.audit import AuditEvent, AuditRecord

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditRecord).decode


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: the number and the hash of its last record."""

    number: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A line that does not continue the chain. Lines count from 1."""

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


def verify(lines: Iterable[bytes], before: Head | None = None) -> tuple[Head, list[Flaw]]:
    """The end of the chain, and every line that is edited, missing or moved.

    `before` is the end of the file that this one continues; without it the first record is taken as it is.
    A log that was cut off at its end is whole in itself: compare its head with one that was noted before.
    """
    head, flaws = before or Head(), list[Flaw]()
    for number, line in enumerate(lines, start=1):
        record = parse(line)
        if record is None:
            flaws.append(Flaw(number, "It is not an audit record."))
            continue
        flaw = _flaw(record, head, first=number == 1 and before is None)
        if flaw:
            flaws.append(Flaw(number, flaw))
        head = head_of(record)
    return head, flaws


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of an audit log. A log is cut into files when it is rotated."""

    name: str
    lines: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of a log, the end of its chain, and its flaws."""

    name: str
    head: Head
    flaws: tuple[Flaw, ...]


def verify_files(files: Iterable[LogFile]) -> list[CheckedFile]:
    """Checks each file, and that the files of one replica continue each other.

    Files without the name of a replica are from before rotation, and each is a log of its own.
    """
    checked: list[CheckedFile] = []
    ends: dict[str, Head] = {}
    for file in sorted(files, key=_order):
        replica = _start(file).replica
        head, flaws = verify(file.lines, ends.get(replica))
        checked.append(CheckedFile(file.name, head, tuple(flaws)))
        if replica:
            ends[replica] = head
    return checked


_NOTHING: Final = AuditRecord(number=0, time="", event=AuditEvent.REFUSED, connection="")


def _start(file: LogFile) -> AuditRecord:
    return next((record for line in file.lines if (record := parse(line)) is not None), _NOTHING)


def _order(file: LogFile) -> tuple[str, int, str]:
    start = _start(file)
    return start.replica, start.number, file.name


def _flaw(record: AuditRecord, head: Head, *, first: bool) -> str:
    if _hash(replace(record, hash="")) != record.hash:
        return "It was edited."
    if first:
        # The file before it may not be at hand, or may be gone by retention.
        return ""
    if record.number != head.number + 1:
        return f"Record {head.number + 1} is missing or was moved."
    return "" if record.previous == head.hash else "It does not follow the line before it."


def _hash(record: AuditRecord) -> str:
    return sha256(_encode(record)).hexdigest()
