"""Where the controller keeps what attempts wrote: the newest of each, read by anybody, followed as it grows."""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from anyio.lowlevel import checkpoint

from neorion.iris.model import AttemptId, JobId
from neorion.keel.base import NoCapacity

CHUNK_BYTES = 256 * 1024
# Per attempt. A log that fills the disk would take every job with it; the newest stays, because people look for how it ended.
LOG_BYTES_MAX = 64 * 1024 * 1024
# What is dropped at once.
PART_BYTES = 8 * 1024 * 1024
# Eight full parts make a whole log; the others come from gaps.
PARTS_MAX = 64


class _Log:
    """One attempt's, in parts: a file for its beginning, and beside it a folder of those that came later, named by their offset."""

    def __init__(self, path: Path) -> None:
        self._first = path
        self._later = path.with_suffix("")
        starts = sorted(int(part.name) for part in self._later.iterdir()) if self._later.is_dir() else []
        if path.exists():
            starts.insert(0, 0)
        # Where each part begins, the oldest first, and how much there is of it.
        self._parts = {start: self._path(start).stat().st_size for start in starts}
        self._size = sum(self._parts.values())
        self.grew = asyncio.Event()
        self.whole = False

    @property
    def end(self) -> int:
        start = next(reversed(self._parts), 0)
        return start + self._parts.get(start, 0)

    def append(self, offset: int, text: bytes) -> None:
        start = next(reversed(self._parts), None)
        if start is None or offset > self.end or self._parts[start] >= PART_BYTES:
            start = offset
        try:
            self._write(start, text)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise NoCapacity(
                "iris.logs_full",
                "The disk where the controller keeps logs is full.",
                hint="Free some space there: what is missing follows.",
                scope="logs",
            ) from error
        self._parts[start] = self._parts.get(start, 0) + len(text)
        self._size += len(text)
        # Each gap begins a part, and a worker may report as many gaps as it likes.
        while self._size > LOG_BYTES_MAX or len(self._parts) > PARTS_MAX:
            oldest = next(iter(self._parts))
            self._size -= self._parts.pop(oldest)
            self._path(oldest).unlink(missing_ok=True)

    def _write(self, start: int, text: bytes) -> None:
        """In its place: what a full disk took of an earlier write is written over."""
        path = self._path(start)
        path.parent.mkdir(parents=True, exist_ok=True)
        place = self._parts.get(start, 0)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            done = 0
            while done < len(text):
                done += os.pwrite(file, text[done:], place + done)
        finally:
            os.close(file)

    def read(self, offset: int) -> tuple[int, bytes]:
        """What there is from `offset` on, or a line in the place of what is gone."""
        for start, size in self._parts.items():
            if offset < start:
                mark = b"%s[%d bytes dropped]\n" % (b"\n" if offset else b"", start - offset)
                return start - len(mark), mark
            if offset < start + size:
                with self._path(start).open("rb") as file:
                    return offset, os.pread(file.fileno(), CHUNK_BYTES, offset - start)
        return offset, b""

    def before(self, end: int) -> tuple[int, bytes]:
        """The last of what is kept before `end`."""
        for start, size in reversed(self._parts.items()):
            if start < end:
                stop = min(end, start + size)
                place = max(start, stop - CHUNK_BYTES)
                with self._path(start).open("rb") as file:
                    return place, os.pread(file.fileno(), stop - place, place - start)
        return end, b""

    def _path(self, start: int) -> Path:
        return self._later / str(start) if start else self._first


class LogStore:
    """Logs by attempt, in a folder per job. Appending costs a write, not a sync: a power cut may cost the last lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[AttemptId, _Log] = {}

    def append(self, job: JobId, attempt: AttemptId, offset: int, text: bytes, *, gap: bool = False) -> int:
        """Adds what is new of `text`, which begins at `offset`; returns how far the log is kept.

        Sent twice is kept once. An offset beyond the end means that this side has lost what it had: the worker is told so
        and goes back. With `gap` there is nothing to go back to, and readers are told what is missing.
        """
        log = self._open(job, attempt)
        if offset > log.end and not gap:
            return log.end
        if new := text[max(0, log.end - offset) :]:
            log.append(max(offset, log.end), new)
            log.grew.set()
            log.grew = asyncio.Event()
        return log.end

    def close(self, attempt: AttemptId) -> None:
        """No more will come: followers may go."""
        if (log := self._logs.pop(attempt, None)) is not None:
            log.whole = True
            log.grew.set()

    async def read(
        self, job: JobId, attempt: AttemptId, offset: int, *, follow: bool
    ) -> AsyncIterator[tuple[int, bytes]]:
        # Only a log that may still grow is kept in mind.
        log = self._open(job, attempt) if follow else self._known(job, attempt)
        while True:
            grew = log.grew
            try:
                place, chunk = log.read(offset)
            except FileNotFoundError:
                # Its job was forgotten meanwhile.
                return
            if chunk:
                yield place, chunk
                offset = place + len(chunk)
            elif log.whole or not follow:
                return
            else:
                await grew.wait()

    async def line_start(self, job: JobId, attempt: AttemptId, lines: int) -> int:
        """Where the last so many lines begin, or what is kept if there are no more."""
        log = self._known(job, attempt)
        place = log.end
        # Its job may be forgotten meanwhile.
        with suppress(FileNotFoundError):
            place, text = log.before(place)
            # The end of the last line has no line after it.
            left = lines + text.endswith(b"\n")
            while text:
                found = text.count(b"\n")
                if found >= left:
                    return place + _last(text, left) + 1
                left -= found
                # A log is large, and others have their turn.
                await checkpoint()
                place, text = log.before(place)
        return place

    def forget(self, job: JobId) -> None:
        if (folder := self._folder / job).exists():
            shutil.rmtree(folder)

    def _open(self, job: JobId, attempt: AttemptId) -> _Log:
        log = self._logs[attempt] = self._known(job, attempt)
        return log

    def _known(self, job: JobId, attempt: AttemptId) -> _Log:
        return self._logs.get(attempt) or _Log(self._folder / job / f"{attempt}.log")


def _last(text: bytes, count: int) -> int:
    """Where the `count`-th end of a line stands, from the last."""
    at = len(text)
    for _ in range(count):
        at = text.rindex(b"\n", 0, at)
    return at
