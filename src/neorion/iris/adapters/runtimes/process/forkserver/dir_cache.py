"""Reuse of the folders of forgotten attempts.

Creating an inode right after a deletion is the most expensive operation of a short task: ext4 without a journal
skips each inode that was freed within the last minute. Reuse frees none.
"""

# ruff: noqa: PTH102, PTH104, PTH106, PTH116, PTH208 -- see `layout`: plain names, plain calls

import os
import shutil
import stat
from contextlib import suppress

from neorion.iris.adapters.runtimes.process.layout import AttemptDir, RuntimeLayout
from neorion.iris.adapters.runtimes.process.result_file import UNFINISHED

# Number of short tasks that a worker starts at once; each folder takes two blocks of the disk.
SPARES_MAX = 1024
# Prefix of folders in the trash that are being deleted and must not be reused.
_DOOMED = "."
_FOLDER_MODE = 0o700
_FOLDER = stat.S_IFDIR | _FOLDER_MODE
_READ_AND_WRITE = stat.S_IRUSR | stat.S_IWUSR
_UNFINISHED_RESULT = "result" + UNFINISHED
_FILES = ("log", "result", _UNFINISHED_RESULT)


class AttemptDirCache:
    """Cache of emptied folders in the fork server, the only process that takes from it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: list[str] = []

    def make(self, place: AttemptDir) -> None:
        """Makes the folder of a new attempt. If the disk is full it raises OSError and leaves no folder."""
        self._names = self._names or os.listdir(self._folder)
        while self._names:
            with suppress(FileNotFoundError):
                return os.rename(f"{self._folder}/{self._names.pop()}", place.home)
        os.mkdir(place.home, _FOLDER_MODE)
        try:
            os.mkdir(place.work, _FOLDER_MODE)
        except OSError:
            os.rmdir(place.home)
            raise


def sweep(files: RuntimeLayout) -> None:
    """Empties the trash into the cache, in the worker, and deletes folders that cannot be reused.

    A worker that is being replaced may do the same at the same time: the first rename succeeds.
    """
    trash, spare = str(files.trash), str(files.spare)
    room = SPARES_MAX - len(os.listdir(spare))
    for name in os.listdir(trash):
        with suppress(FileNotFoundError):
            if room > 0 and not name.startswith(_DOOMED) and _emptied(f"{trash}/{name}"):
                os.rename(f"{trash}/{name}", f"{spare}/{name}")
                room -= 1
                continue
            doomed = f"{trash}/{_DOOMED}{name.removeprefix(_DOOMED)}"
            os.rename(f"{trash}/{name}", doomed)
            shutil.rmtree(doomed, ignore_errors=True)


def _emptied(home: str) -> bool:
    """Empties a folder. False if a task has changed it so that the next task could notice."""
    if os.stat(home).st_mode != _FOLDER:
        return False
    names: set[str] = set()
    with os.scandir(home) as found:
        for entry in found:
            names.add(entry.name)
            status = entry.stat(follow_symlinks=False)
            if entry.name == "work":
                good = status.st_mode == _FOLDER and not os.listdir(entry.path)
            else:
                good = entry.name in _FILES and _is_own_file(status)
            if not good:
                return False
            if entry.name in _FILES and status.st_size:
                _truncate(entry.path)
    if "result" in names:
        os.rename(f"{home}/result", f"{home}/{_UNFINISHED_RESULT}")
    return "work" in names


def _is_own_file(status: os.stat_result) -> bool:
    """True for a file that can be reused: writable, and without another hard link."""
    usable = status.st_mode & _READ_AND_WRITE == _READ_AND_WRITE
    return stat.S_ISREG(status.st_mode) and usable and status.st_nlink == 1


def _truncate(path: str) -> None:
    """Truncates with an own open and close, because on ext4 the next close would flush the file."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)
