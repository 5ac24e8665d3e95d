"""Files of the machine that belong to a container: its runner's last words, its log and its shared memory."""

import shutil
from pathlib import Path, PurePosixPath
from typing import Final

from neorion.iris.adapters.runtimes.container.settings import HostMount
from neorion.iris.model import AttemptId

# The file name is the one that Kubernetes uses.
_RECORD: Final = PurePosixPath("/dev/termination-log")
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 -- the kernel's own name for it


class HostFiles:
    """One directory for each container, below the worker's own."""

    def __init__(self, folder: Path, worker: str) -> None:
        self._folder = folder
        self._worker = worker

    def make(self, attempt: AttemptId) -> HostMount:
        """Makes the directory, and returns the file for the runner's end."""
        record = self._record(attempt)
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record.touch()
        # Written by the user of the image. Other users of the machine cannot enter the directory.
        record.chmod(0o666)
        return HostMount(record, _RECORD)

    def make_shared_memory(self, attempt: AttemptId) -> HostMount:
        """Makes shared memory that only the memory of the container limits."""
        shared = self._shared(attempt)
        shared.mkdir(exist_ok=True)
        shared.chmod(0o1777)
        return HostMount(shared, PurePosixPath(_SHARED_MEMORY))

    def folder(self, attempt: AttemptId) -> Path:
        return self._folder / attempt

    def record(self, attempt: AttemptId) -> bytes:
        """The end that the runner left; empty without one."""
        try:
            return self._record(attempt).read_bytes()
        except FileNotFoundError:
            return b""

    def remove(self, attempt: AttemptId) -> None:
        shutil.rmtree(self.folder(attempt), ignore_errors=True)
        shutil.rmtree(self._shared(attempt), ignore_errors=True)

    def _record(self, attempt: AttemptId) -> Path:
        return self.folder(attempt) / "end"

    def _shared(self, attempt: AttemptId) -> Path:
        return _SHARED_MEMORY / f"iris-{self._worker}-{attempt}"
