"""The audit log as files: appended to, never rewritten, and rotated by day and by size."""

import os
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from neorion.devservers.decide.audit import Head, head_of, line_of, parse, sealed
from neorion.devservers.model.audit import AuditRecord
from neorion.keel.base import Terminal
from neorion.keel.telemetry import logger

log = logger(__name__)

# No record is longer: texts of clients are cut before.
_LINE_MAX: Final = 64 * 1024
ROTATE_BYTES: Final = 64 * 2**20
_DAY: Final = len("2026-01-01")


class AuditLog:
    """One process writes to a log. `write` returns when the record cannot be lost by a kill of the process.

    A rotated file carries the number of its first record, so that its name tells its order.
    """

    def __init__(self, file: Path, replica: str = "", rotate_bytes: int = ROTATE_BYTES) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = file
        self._replica = replica
        self._rotate_bytes = rotate_bytes
        self._descriptor = self._open()
        self._first: AuditRecord | None = None
        self._size = 0
        self.head = self._resume()

    def write(self, record: AuditRecord) -> None:
        done = sealed(replace(record, replica=self._replica), self.head)
        line = line_of(done)
        if self._is_due(done, len(line)):
            self._rotate()
        if os.write(self._descriptor, line) != len(line):
            raise Terminal(
                "devservers.audit_full",
                "The audit log cannot be written.",
                hint="Free space on its volume: without the log the bastion admits no user.",
            )
        self._first = self._first or done
        self._size += len(line)
        self.head = head_of(done)

    def rotated(self) -> list[Path]:
        """The files that are no longer written, oldest first."""
        return sorted(self._file.parent.glob(f"{self._file.stem}-*{self._file.suffix}"))

    def close(self) -> None:
        os.close(self._descriptor)

    def _open(self) -> int:
        return os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def _is_due(self, record: AuditRecord, length: int) -> bool:
        if self._first is None:
            return False
        return self._size + length > self._rotate_bytes or record.time[:_DAY] != self._first.time[:_DAY]

    def _rotate(self) -> None:
        if self._first is None:
            return
        name = f"{self._file.stem}-{self._first.number:012d}{self._file.suffix}"
        self._file.rename(self._file.with_name(name))
        os.close(self._descriptor)
        self._descriptor = self._open()
        self._first, self._size = None, 0

    def _resume(self) -> Head:
        """The end of the chain that an earlier process wrote. Half a line at the end is cut off: nothing followed it."""
        size = os.fstat(self._descriptor).st_size
        tail = os.pread(self._descriptor, _LINE_MAX, max(0, size - _LINE_MAX))
        whole, newline, rest = tail.rpartition(b"\n")
        if rest:
            log.warning("audit log ended in half a record", bytes=len(rest))
            size -= len(rest)
            os.ftruncate(self._descriptor, size)
        self._size = size
        self._first = parse(os.pread(self._descriptor, _LINE_MAX, 0).partition(b"\n")[0])
        last = parse(whole.rpartition(b"\n")[2]) if newline else None
        return head_of(last) if last is not None else self._rotated_head()

    def _rotated_head(self) -> Head:
        """The process before this one may have ended between a rotation and the next record."""
        files = self.rotated()
        if not files:
            return Head()
        last = parse(files[-1].read_bytes().rstrip(b"\n").rpartition(b"\n")[2])
        return head_of(last) if last is not None else Head()
