"""The log of a cluster's changes outside its folder, each written before the change, so that it can be undone."""

import errno
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Undo = Callable[[str], Awaitable[None]]

_NAME: Final = "effects"


@dataclass(frozen=True, slots=True)
class HostChange:
    """One change: its kind, and the name that undoing it needs."""

    kind: str
    name: str


class UndoLog:
    """One line for each change, oldest first. Not synced, because a power cut also removes the changes from the kernel."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME

    def record(self, kind: str, name: str) -> None:
        """Records a change before it is made.

        Recording twice is harmless, because undoing a missing change does nothing.
        """
        line = f"{kind} {name}\n".encode()
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # One write, so that a kill leaves the whole line or nothing.
            written = os.write(handle, line)
            if written < len(line):
                os.ftruncate(handle, os.fstat(handle).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)

    def forget(self, kind: str, name: str) -> None:
        """Removes a change after it was undone."""
        self._write([effect for effect in self.effects() if effect != HostChange(kind, name)])

    def forget_all_but(self, kind: str) -> None:
        """Drops all changes of other kinds, because their names belong to another cluster now."""
        self._write([effect for effect in self.effects() if effect.kind == kind])

    def effects(self) -> list[HostChange]:
        if not self._path.exists():
            return []
        lines = (line.split(" ", 1) for line in self._path.read_text().splitlines())
        return list(dict.fromkeys(HostChange(kind, name) for kind, name in lines))

    async def undo_all(self, undo: Mapping[str, Undo]) -> None:
        """Undoes all changes, newest first.

        Undo functions must be repeatable, because a kill may prevent the removal of a line.
        """
        for effect in reversed(self.effects()):
            await undo[effect.kind](effect.name)
            self._cut(effect)

    def _cut(self, newest: HostChange) -> None:
        """Removes the newest change by truncation, which needs no disk space.

        All lines after its first one repeat older ones.
        """
        line = f"\n{newest.kind} {newest.name}\n".encode()
        os.truncate(self._path, (b"\n" + self._path.read_bytes()).index(line))

    def _write(self, effects: list[HostChange]) -> None:
        partial = self._path.with_suffix(".part")
        partial.write_text("".join(f"{effect.kind} {effect.name}\n" for effect in effects))
        partial.replace(self._path)
