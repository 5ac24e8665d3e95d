"""Where the controller keeps what attempts wrote: a file for each, read by anybody, followed as it grows."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from neorion.iris.model import AttemptId, JobId

CHUNK_BYTES = 256 * 1024
# Per attempt. What comes after is counted, not kept: a log that fills the disk would take every job with it.
LOG_BYTES_MAX = 64 * 1024 * 1024


class _Log:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = path.stat().st_size if path.exists() else 0
        self.grew = asyncio.Event()
        self.whole = False


class LogShelf:
    """Logs by attempt, in a folder per job. Appending costs a write, not a sync: a power cut may cost the last lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs: dict[AttemptId, _Log] = {}

    def append(self, job: JobId, attempt: AttemptId, offset: int, text: bytes, *, last: bool = False) -> int:
        """Adds what is new of `text`, which begins at `offset`; returns how far the log is kept.

        Sent twice is kept once. A gap means that this side has lost what it had: the worker is told so and goes back.
        With the last part it is too late for that, and the log says what is missing.
        """
        log = self._open(job, attempt)
        if offset > log.size and not last:
            return log.size
        new = text[max(0, log.size - offset) :] if offset <= log.size else text
        if new and log.size < LOG_BYTES_MAX:
            log.path.parent.mkdir(parents=True, exist_ok=True)
            with log.path.open("ab") as file:
                if offset > log.size:
                    new = b"[%d bytes dropped]\n" % (offset - log.size) + new
                file.write(new)
        log.size = max(log.size, offset + len(text))
        log.grew.set()
        log.grew = asyncio.Event()
        return log.size

    def close(self, attempt: AttemptId) -> None:
        """No more will come: followers may go."""
        if (log := self._logs.pop(attempt, None)) is not None:
            log.whole = True
            log.grew.set()

    async def read(
        self, job: JobId, attempt: AttemptId, offset: int, *, follow: bool
    ) -> AsyncIterator[tuple[int, bytes]]:
        # Only a log that may still grow is kept in mind.
        log = self._open(job, attempt) if follow else _Log(self._path(job, attempt))
        while True:
            grew = log.grew
            chunk = _read(log.path, offset)
            if chunk:
                yield offset, chunk
                offset += len(chunk)
            elif log.whole or not follow:
                return
            else:
                await grew.wait()

    def size(self, job: JobId, attempt: AttemptId) -> int:
        """How much of it can be read now."""
        path = self._path(job, attempt)
        return path.stat().st_size if path.exists() else 0

    def forget(self, job: JobId) -> None:
        folder = self._folder / job
        for path in folder.glob("*.log"):
            path.unlink()
        if folder.exists():
            folder.rmdir()

    def _open(self, job: JobId, attempt: AttemptId) -> _Log:
        log = self._logs.get(attempt)
        if log is None:
            log = self._logs[attempt] = _Log(self._path(job, attempt))
        return log

    def _path(self, job: JobId, attempt: AttemptId) -> Path:
        return self._folder / job / f"{attempt}.log"


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            return os.pread(file.fileno(), CHUNK_BYTES, offset)
    except FileNotFoundError:
        return b""
