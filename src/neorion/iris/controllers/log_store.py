"""Log store of the controller: the newest output of each attempt, read by any client and followed while it grows."""

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
# Per attempt, so that no log fills the disk for all jobs. The newest output is kept, because it explains the end.
LOG_BYTES_MAX = 64 * 1024 * 1024
# Unit of deletion.
PART_BYTES = 8 * 1024 * 1024
# Eight full parts make a complete log; further parts come from gaps.
PARTS_MAX = 64


class _Log:
    """Log of one attempt in parts: a file for its beginning, and a folder of later parts, named by their offset."""

    def __init__(self, path: Path) -> None:
        self._first = path
        self._later = path.with_suffix("")
        starts = sorted(int(part.name) for part in self._later.iterdir()) if self._later.is_dir() else []
        if path.exists():
            starts.insert(0, 0)
        # Offset and size of each part, the oldest first.
        self._parts = {start: self._path(start).stat().st_size for start in starts}
        self._size = sum(self._parts.values())
        self.grew = asyncio.Event()
        self.complete = False

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
                "The controller's disk for logs is full.",
                hint="Free space on it: the missing output is then sent again.",
                scope="logs",
            ) from error
        self._parts[start] = self._parts.get(start, 0) + len(text)
        self._size += len(text)
        # Each gap begins a part, and the number of gaps is not limited.
        while self._size > LOG_BYTES_MAX or len(self._parts) > PARTS_MAX:
            oldest = next(iter(self._parts))
            self._size -= self._parts.pop(oldest)
            self._path(oldest).unlink(missing_ok=True)

    def _write(self, start: int, text: bytes) -> None:
        """Writes at a fixed offset, so that the rest of an earlier write to a full disk is overwritten."""
        path = self._path(start)
        path.parent.mkdir(parents=True, exist_ok=True)
        position = self._parts.get(start, 0)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            done = 0
            while done < len(text):
                done += os.pwrite(file, text[done:], position + done)
        finally:
            os.close(file)

    def read(self, offset: int) -> tuple[int, bytes]:
        """Text from `offset` on, or a line that states how many bytes were dropped."""
        for start, size in self._parts.items():
            if offset < start:
                mark = b"%s[%d bytes dropped]\n" % (b"\n" if offset else b"", start - offset)
                return start - len(mark), mark
            if offset < start + size:
                with self._path(start).open("rb") as file:
                    return offset, os.pread(file.fileno(), CHUNK_BYTES, offset - start)
        return offset, b""

    def before(self, end: int) -> tuple[int, bytes]:
        """Last kept text before `end`."""
        for start, size in reversed(self._parts.items()):
            if start < end:
                stop = min(end, start + size)
                begin = max(start, stop - CHUNK_BYTES)
                with self._path(start).open("rb") as file:
                    return begin, os.pread(file.fileno(), stop - begin, begin - start)
        return end, b""

    def _path(self, start: int) -> Path:
        return self._later / str(start) if start else self._first


class LogStore:
    """Logs by attempt, in a folder per job. Appending does not sync, so a power failure may lose the last lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[AttemptId, _Log] = {}

    def append(self, job: JobId, attempt: AttemptId, offset: int, text: bytes, *, gap: bool = False) -> int:
        """Adds the new part of `text`, which begins at `offset`. Returns the offset up to which the log is stored.

        Repeated text is stored once. An offset beyond the end means that the controller has lost text: the worker then
        sends it again. With `gap` the worker no longer has it, and readers see how much is missing.
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
        """Marks the log as complete, which ends its followers."""
        if (log := self._logs.pop(attempt, None)) is not None:
            log.complete = True
            log.grew.set()

    async def read(
        self, job: JobId, attempt: AttemptId, offset: int, *, follow: bool
    ) -> AsyncIterator[tuple[int, bytes]]:
        # Only a log that may still grow is kept in memory.
        log = self._open(job, attempt) if follow else self._known(job, attempt)
        while True:
            grew = log.grew
            try:
                place, chunk = log.read(offset)
            except FileNotFoundError:
                # The job was deleted meanwhile.
                return
            if chunk:
                yield place, chunk
                offset = place + len(chunk)
            elif log.complete or not follow:
                return
            else:
                await grew.wait()

    async def line_start(self, job: JobId, attempt: AttemptId, lines: int) -> int:
        """Offset of the last `lines` lines, or of the beginning of the kept text if there are fewer."""
        log = self._known(job, attempt)
        place = log.end
        # The job may be deleted meanwhile.
        with suppress(FileNotFoundError):
            place, text = log.before(place)
            # A final newline does not begin another line.
            left = lines + text.endswith(b"\n")
            while text:
                found = text.count(b"\n")
                if found >= left:
                    return place + _last(text, left) + 1
                left -= found
                # A log may be large, and other tasks must run.
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
    """Position of the `count`-th newline from the end."""
    at = len(text)
    for _ in range(count):
        at = text.rindex(b"\n", 0, at)
    return at
