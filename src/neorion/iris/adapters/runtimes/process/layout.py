"""Layout of the runtime's files on disk.

Files of an attempt have plain strings as paths, not `Path`s: they are used in every forked process,
where each touched object costs a copied page.
"""

# ruff: noqa: PTH104, PTH119 -- plain names, plain calls

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns

# An attempt's id becomes a file name, so separators and leading dots are not allowed.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def is_safe(name: str) -> bool:
    return _SAFE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class AttemptDir:
    """Folder of one attempt. Its task runs in `work`.

    The folder exists while the attempt is accepted and not yet forgotten.
    """

    home: str
    work: str
    log: str
    result: str

    @property
    def refusal(self) -> str:
        """File with the reason why the task could not start: exit code and one sentence, written by its own process."""
        return self.home + "/refusal"


@dataclass(frozen=True, slots=True)
class RuntimeLayout:
    """Root of the runtime, with its folders and files."""

    root: Path

    def make(self) -> None:
        for path in (self.root, *self._folders):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (
            self.attempts,
            self.packages,
            self.environments,
            self.pools,
            self.spare,
            self.trash,
        )

    @property
    def socket(self) -> Path:
        return self.root / "forkserver.sock"

    @property
    def lock(self) -> Path:
        """Lock that is held while a fork server or a process of its tasks exists."""
        return self.root / "forkserver.lock"

    @property
    def own_log(self) -> Path:
        return self.root / "forkserver.log"

    @property
    def journal(self) -> Path:
        return self.root / "ends"

    @property
    def attempts(self) -> Path:
        return self.root / "attempts"

    @property
    def packages(self) -> Path:
        return self.root / "packages"

    @property
    def environments(self) -> Path:
        """Files that setup commands keep for later tasks."""
        return self.root / "environments"

    @property
    def pools(self) -> Path:
        return self.root / "pools"

    @property
    def spare(self) -> Path:
        """Emptied folders of forgotten attempts, for reuse (`dir_cache`)."""
        return self.root / "spare"

    @property
    def trash(self) -> Path:
        """Folders of forgotten attempts, until the worker empties or deletes them."""
        return self.root / "trash"

    def attempt(self, attempt: str) -> AttemptDir:
        home = f"{self.root}/attempts/{attempt}"
        return AttemptDir(home, f"{home}/work", f"{home}/log", f"{home}/result")

    def discard(self, path: str) -> None:
        """Moves a folder to the trash. The worker deletes it, because that would block the fork server."""
        try:
            os.rename(path, f"{self.trash}/{os.path.basename(path)}.{boottime_ns()}")
        except FileNotFoundError:
            return
        except OSError:
            # A full disk has no room for another name, so the folder is deleted here.
            shutil.rmtree(path, ignore_errors=True)
