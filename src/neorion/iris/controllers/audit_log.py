"""The audit log: every call that changes something is on record before it is answered, also one that was refused."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model.record import AuditEntry
from neorion.iris.state import note_deed
from neorion.keel.base import Denied, Error
from neorion.keel.rpc import Principal

DONE = "done"
# Methods that change something. Workers' reports do too, by the thousand: what follows from them is in the records.
_CHANGES = ("Submit", "Cancel", "Drain", "Revoke", "Join")
# A name in a request may be as long as a request; what is kept of it is enough to recognise it.
_TARGET_CHARS_MAX = 512


class AuditScope:
    """One call on its way. Whoever carries it out says so with `done`, before waiting for the journal."""

    def __init__(self, audit: "AuditLog", who: str, what: str, target: str) -> None:
        self._audit = audit
        self._who, self._what, self._target = who, what, target
        self._open = True

    def about(self, target: str) -> None:
        """By which name people know it: an id says nothing once what it stood for is forgotten."""
        self._target = target

    def done(self) -> None:
        self.close(DONE)

    def drop(self) -> None:
        """Nothing was to be changed after all."""
        self._open = False

    def close(self, outcome: str) -> None:
        if self._open:
            self._open = False
            self._audit.note(self._who, self._what, self._target[:_TARGET_CHARS_MAX], outcome)


class AuditLog:
    """Numbers deeds and hands them to the journal, in the same commit as what they did. `last` is the newest's number."""

    def __init__(self, context: ControllerContext, last: int) -> None:
        self._context = context
        self.last = last

    def note(self, who: str, what: str, target: str, outcome: str) -> None:
        self.last += 1
        deed = AuditEntry(self.last, self._context.clock.now(), who, what, target, outcome)
        note_deed(self._context.journal, deed)

    async def denied(self, who: Principal, path: str, error: Denied) -> None:
        """Whose role does not allow a call is heard no further, so what it was about is not known."""
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
            # Cancelled or broken: what came of it is not known here.
            entry.close("unknown")
            raise
