"""Logs of attempts: each task appends to its own, and its size is limited."""

# ruff: noqa: PTH116, PTH123 -- see `layout`: plain names, plain calls

import errno
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath

from neorion.iris.adapters.runtimes.process import syscalls
from neorion.keel.telemetry import logger

log = logger(__name__)

# Longest log: enough for days of training output, and a hundred of them fit on a small disk.
LOG_BYTES_MAX = 64 << 20
# Pause between two checks of a busy log. At 1 GB/s the log exceeds the limit by less than its size.
PAUSE_NS = 50_000_000
_NOT_WATCHED = -1
_MARK = re.compile(rb"\[\d+ bytes dropped: the log passed \d+ bytes\]\n")


def kept_from(path: PurePath) -> int:
    """Offset of the first byte after the line about dropped bytes; 0 until the log was trimmed."""
    with Path(path).open("rb") as file:
        try:
            start = os.lseek(file.fileno(), 0, os.SEEK_DATA)
        except OSError:
            return 0
        file.seek(start)
        head = file.read(2 * os.fstat(file.fileno()).st_blksize)
        if not start:
            return 0
        # `trim` may have punched the hole but not yet written the line.
        mark = _MARK.search(head)
        return start + (mark.end() if mark else len(head) - len(head.lstrip(b"\0")))


def trim(path: str, most: int = LOG_BYTES_MAX) -> None:
    """Drops the older part of a log that exceeds `most` bytes, and writes there how many bytes are gone.

    The rest keeps its offset, so that readers that follow the log by offset are not disturbed.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    if status.st_size <= most or status.st_blocks * 512 <= most:
        return
    with open(path, "r+b") as file:
        end = status.st_size - most // 2
        mark = f"\n[{end} bytes dropped: the log passed {most} bytes]\n".encode()
        try:
            syscalls.punch_hole(file.fileno(), end - len(mark))
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            # On a file system without holes all text is dropped, and the writers continue at the beginning.
            file.truncate(0)
            mark = f"[{status.st_size} bytes dropped: the log passed {most} bytes]\n".encode()
            end = len(mark)
        os.pwrite(file.fileno(), mark, end - len(mark))


class LogTrimmer:
    """Trims the logs of running attempts. Logs that are not written to cost nothing."""

    def __init__(self, later: Callable[[int, Callable[[], None]], object]) -> None:
        """`later` calls a function after a number of nanoseconds."""
        self._later = later
        self._modifications = syscalls.Modifications()
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}

    @property
    def fd(self) -> int:
        return self._modifications.fd

    def add(self, path: str) -> None:
        self._watches[path] = _NOT_WATCHED
        # Short tasks end before the first check.
        self._pause(path)

    def remove(self, path: str) -> None:
        watch = self._watches.pop(path, None)
        if watch is None:
            return
        if watch != _NOT_WATCHED:
            self._paths.pop(watch, None)
            self._modifications.unwatch(watch)
        with suppress(OSError):
            trim(path)

    def read(self) -> None:
        for watch in self._modifications.read():
            path = self._paths.pop(watch, None)
            if path is not None:
                self._watches[path] = _NOT_WATCHED
                self._pause(path)

    def _pause(self, path: str) -> None:
        self._later(PAUSE_NS, lambda: self._watch_and_trim(path))

    def _watch_and_trim(self, path: str) -> None:
        if self._watches.get(path) == _NOT_WATCHED:
            try:
                # Watched before it is measured, so that a write in between is not missed.
                watch = self._watches[path] = self._modifications.watch(path)
                self._paths[watch] = path
                trim(path)
            except OSError as error:
                log.warning("a log is not watched", path=path, why=error.strerror)
