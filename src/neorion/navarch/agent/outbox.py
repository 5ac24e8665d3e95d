"""Events on their way to the control plane: kept on disk until they were taken, so that neither side's end loses one.

A file of lines, each an event under its number or a note of how far events were taken. Numbers count within one life of the
agent: what a crash may have torn off the end of the file is never numbered again.
"""

import asyncio
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from anyio import to_thread
from msgspec import DecodeError, Struct, json

from neorion.keel.telemetry import logger
from neorion.navarch.model import HealthEvent

log = logger(__name__)

# Events queue while the control plane is away. Beyond this number the oldest are dropped, and an event reports it.
WAITING_MAX: Final = 1_000
BATCH_MAX: Final = 200
# Lines of delivered events, before the file is written again.
STALE_MAX: Final = 1_000


class _OutboxEntry(Struct, frozen=True, omit_defaults=True):
    """An event, or without one: everything of that life up to this number was taken."""

    boot: str
    number: int
    event: HealthEvent | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that one life of the agent saw one after the other; `first` is the number of the first."""

    boot: str
    first: int
    events: tuple[HealthEvent, ...]

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1


class Outbox:
    """Events to be sent, the oldest first. `boot` is the agent's run that adds to it. Without a file they end with that run."""

    def __init__(self, boot: str, path: Path | None = None) -> None:
        # As a plain text: that is what goes into the file.
        self.boot = str(boot)
        self._number = 0
        self._waiting: deque[_OutboxEntry] = deque()
        self._news = asyncio.Event()
        self._path = path
        self._file = -1
        self._lines = 0
        self._unsynced = asyncio.Event()
        if path is not None:
            self._waiting.extend(_left(path))
            self._rewrite()
        if self._waiting:
            self._news.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: HealthEvent) -> None:
        """When this returns, an agent that is killed has not forgotten it; `keep` makes it outlive the machine too."""
        if len(self._waiting) >= WAITING_MAX:
            log.warning("an event was lost", kind=_kind(self._waiting.popleft()))
        self._number += 1
        line = _OutboxEntry(self.boot, self._number, event)
        self._waiting.append(line)
        self._append(line)
        self._news.set()

    async def next_batch(self) -> Batch:
        """Waits until there is something to tell. The same again, and perhaps more, until it was taken."""
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        boot, first = self._waiting[0].boot, self._waiting[0].number
        events: list[HealthEvent] = []
        for line in self._waiting:
            # After a gap the numbers would not fit any more.
            follows = line.boot == boot and line.number == first + len(events)
            if line.event is None or not follows or len(events) == BATCH_MAX:
                break
            events.append(line.event)
        return Batch(boot, first, tuple(events))

    def taken(self, batch: Batch) -> None:
        """The control plane has these for good, or never wants them."""
        while self._waiting and self._waiting[0].boot == batch.boot and self._waiting[0].number <= batch.last:
            self._waiting.popleft()
        self._append(_OutboxEntry(batch.boot, batch.last))
        if self._lines - len(self._waiting) > STALE_MAX:
            self._rewrite()

    def clear(self) -> None:
        """Drops all events, because their node is gone."""
        self._waiting.clear()
        self._rewrite()

    async def keep(self) -> NoReturn:
        """Syncs the file to disk in the background, so that a disk that hangs does not stop the agent."""
        while True:
            await self._unsynced.wait()
            self._unsynced.clear()
            if self._file >= 0:
                await to_thread.run_sync(_sync, os.dup(self._file), abandon_on_cancel=True)

    def _append(self, line: _OutboxEntry) -> None:
        if self._file < 0:
            return
        try:
            os.write(self._file, json.encode(line) + b"\n")
        except OSError as error:
            log.failure("an event is kept in memory alone", error)
        self._lines += 1
        self._unsynced.set()

    def _rewrite(self) -> None:
        """The file as it would be had it just begun; it appears whole."""
        if self._path is None:
            return
        fresh = self._path.with_suffix(".new")
        try:
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(file, b"".join(json.encode(line) + b"\n" for line in self._waiting))
            os.fsync(file)
            fresh.replace(self._path)
        except OSError as error:
            log.failure("events are kept in memory alone", error)
            return
        if self._file >= 0:
            os.close(self._file)
        self._file, self._lines = file, len(self._waiting)


def _left(path: Path) -> Iterator[_OutboxEntry]:
    """Events that earlier runs did not deliver. A line that a crash left incomplete is skipped."""
    try:
        text = path.read_bytes()
    except OSError:
        return
    lines: list[_OutboxEntry] = []
    for one in text.splitlines():
        try:
            lines.append(json.decode(one, type=_OutboxEntry))
        except (DecodeError, UnicodeDecodeError):
            log.warning("a line of the outbox cannot be read", length=len(one))
    done = {line.boot: line.number for line in lines if line.event is None}
    left = [line for line in lines if line.event is not None and line.number > done.get(line.boot, 0)]
    yield from left[-WAITING_MAX:]


def _kind(line: _OutboxEntry) -> str:
    return line.event.kind.value if line.event is not None else ""


def _sync(file: int) -> None:
    try:
        os.fdatasync(file)
    except OSError as error:
        log.failure("events may not outlive the machine", error)
    finally:
        os.close(file)
