"""The audit log as a file: appended to, never rewritten."""

import os
from pathlib import Path

from neorion.devservers.decide.audit import Head, head_of, line_of, parse, sealed
from neorion.devservers.model.audit import AuditRecord
from neorion.keel.base import Terminal
from neorion.keel.telemetry import logger

log = logger(__name__)

# More than any record has: what clients name is cut long before.
_LINE_MAX = 64 * 1024


class AuditLog:
    """One process writes to a file. `write` returns when the record cannot be lost by a kill of the process."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.head = self._resume()

    def write(self, record: AuditRecord) -> None:
        done = sealed(record, self.head)
        line = line_of(done)
        if os.write(self._descriptor, line) != len(line):
            raise Terminal(
                "devservers.audit_full",
                "The audit log cannot be written.",
                hint="Free space on its volume: without it the bastion lets no user in.",
            )
        self.head = head_of(done)

    def close(self) -> None:
        os.close(self._descriptor)

    def _resume(self) -> Head:
        """Where the process before this one ended. Half a line that it left behind is cut off: nothing came of it."""
        size = os.fstat(self._descriptor).st_size
        tail = os.pread(self._descriptor, _LINE_MAX, max(0, size - _LINE_MAX))
        whole, newline, rest = tail.rpartition(b"\n")
        if rest:
            log.warning("audit log ended in half a record", bytes=len(rest))
            os.ftruncate(self._descriptor, size - len(rest))
        last = parse(whole.rpartition(b"\n")[2]) if newline else None
        return head_of(last) if last is not None else Head()
