"""Audit log: every call that changes something, also a refused one, is recorded before its response."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model.record import AuditEntry
from neorion.iris.state import note_audit_entry
from neorion.keel.base import Denied, Error
from neorion.keel.rpc import Principal

DONE = "done"
# Methods that change something. Reports of workers are left out because the records show their effects.
_CHANGES = ("Submit", "Cancel", "Drain", "Revoke", "Join")
# A name in a request may be very long; this much is enough to recognise it.
_TARGET_CHARS_MAX = 512


class AuditScope:
    """One running call. The code that applies it calls `done` before it waits for the journal."""

    def __init__(self, audit: "AuditLog", who: str, what: str, target: str) -> None:
        self._audit = audit
        self._who, self._what, self._target = who, what, target
        self._open = True

    def about(self, target: str) -> None:
        """Sets the readable name of the target, because an id has no meaning once the record is deleted."""
        self._target = target

    def done(self) -> None:
        self.close(DONE)

    def drop(self) -> None:
        """Drops the entry, because the call changed nothing."""
        self._open = False

    def close(self, outcome: str) -> None:
        if self._open:
            self._open = False
            self._audit.note(self._who, self._what, self._target[:_TARGET_CHARS_MAX], outcome)


class AuditLog:
    """Writer of numbered entries, in the same commit as their effects. `last` is the newest number."""

    def __init__(self, context: ControllerContext, last: int) -> None:
        self._context = context
        self.last = last

    def note(self, who: str, what: str, target: str, outcome: str) -> None:
        self.last += 1
        entry = AuditEntry(self.last, self._context.clock.now(), who, what, target, outcome)
        note_audit_entry(self._context.journal, entry)

    async def denied(self, who: Principal, path: str, error: Denied) -> None:
        """Records a call that the caller's role does not allow. Its request is not read, so the target is unknown."""
        what = path.rpartition("/")[2]
        if what in _CHANGES:
            self.note(who.name, what, "", error.code)
            await self._context.journal.wait_durable()

    @asynccontextmanager
    async def entry(self, who: str, what: str, target: str) -> AsyncGenerator[AuditScope]:
        entry = AuditScope(self, who, what, target)
        try:
            yield entry
        except Error as error:
            entry.close(error.code)
            await self._context.journal.wait_durable()
            raise
        except BaseException:
            # After a cancellation or a defect the outcome is unknown.
            entry.close("unknown")
            raise
