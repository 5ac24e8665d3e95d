"""The folders of forgotten attempts, used again.

To make an inode right after others were deleted is the dearest thing a short task asks of a disk: ext4 without a journal
passes over each one that was freed a minute ago or less. Nothing is freed where nothing is deleted.
"""

# ruff: noqa: PTH102, PTH104, PTH106, PTH116, PTH208 -- see `files`: plain names, plain calls

import os
import shutil
import stat
from contextlib import suppress

from neorion.iris.adapters.runtimes.process.layout import AttemptDir, RuntimeLayout
from neorion.iris.adapters.runtimes.process.result_file import UNFINISHED

# As many short tasks as a worker is given at once; each takes up two blocks of the disk.
SPARES_MAX = 1024
# In the trash: nobody empties these for others, they are being deleted.
_DOOMED = "."
_FOLDER_MODE = 0o700
_FOLDER = stat.S_IFDIR | _FOLDER_MODE
_READ_AND_WRITE = stat.S_IRUSR | stat.S_IWUSR
_UNFINISHED_RESULT = "result" + UNFINISHED
_FILES = ("log", "result", _UNFINISHED_RESULT)


class AttemptDirCache:
    """The fork server's side: it alone takes."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: list[str] = []

    def make(self, place: AttemptDir) -> None:
        """The folder of a new attempt. OSError, and no folder, where the disk has no room."""
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
    """The worker's side: empties the trash into the spares, and deletes what cannot be used again.

    Another worker, about to be replaced, may do the same at the same time: whoever renames first has it.
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
    """Whether it is as good as new. What a task may have changed about it, the next one must not find."""
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
    """A file that has another name is still read by that name."""
    usable = status.st_mode & _READ_AND_WRITE == _READ_AND_WRITE
    return stat.S_ISREG(status.st_mode) and usable and status.st_nlink == 1


def _truncate(path: str) -> None:
    """By a file that is opened and closed: the next to close it would flush it otherwise, on ext4."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)
