"""What a cluster has changed outside its folder: written down before it is done, so that it can always be undone."""

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
    """One change: which kind, and the name that its undoing needs."""

    kind: str
    name: str


class UndoLog:
    """One line for each effect, oldest first. Not synced: what a power cut takes from the disk it takes from the kernel too."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME

    def record(self, kind: str, name: str) -> None:
        """Before the effect. Recording twice is harmless: undoing what is not there does nothing."""
        line = f"{kind} {name}\n".encode()
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # One write: a kill leaves the whole line or nothing.
            written = os.write(handle, line)
            if written < len(line):
                os.ftruncate(handle, os.fstat(handle).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(handle)

    def forget(self, kind: str, name: str) -> None:
        """After the effect was undone."""
        self._write([effect for effect in self.effects() if effect != HostChange(kind, name)])

    def forget_all_but(self, kind: str) -> None:
        """What is called as these effects are is somebody else's now."""
        self._write([effect for effect in self.effects() if effect.kind == kind])

    def effects(self) -> list[HostChange]:
        if not self._path.exists():
            return []
        lines = (line.split(" ", 1) for line in self._path.read_text().splitlines())
        return list(dict.fromkeys(HostChange(kind, name) for kind, name in lines))

    async def undo_all(self, undo: Mapping[str, Undo]) -> None:
        """Newest first. Each must bear to be undone again: a kill may come between the undoing and the forgetting."""
        for effect in reversed(self.effects()):
            await undo[effect.kind](effect.name)
            self._cut(effect)

    def _cut(self, newest: HostChange) -> None:
        """Needs no room, which a full disk does not have. All behind the first line of the newest effect repeats older ones."""
        line = f"\n{newest.kind} {newest.name}\n".encode()
        os.truncate(self._path, (b"\n" + self._path.read_bytes()).index(line))

    def _write(self, effects: list[HostChange]) -> None:
        partial = self._path.with_suffix(".part")
        partial.write_text("".join(f"{effect.kind} {effect.name}\n" for effect in effects))
        partial.replace(self._path)
