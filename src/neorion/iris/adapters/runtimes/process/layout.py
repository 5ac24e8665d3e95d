"""Where everything of the runtime lies on disk.

What belongs to one attempt is named by plain texts, not `Path`s: these names are made and used in every forked process,
where each object touched is a page copied.
"""

# ruff: noqa: PTH104, PTH119 -- as said

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from neorion.iris.adapters.runtimes.process.syscalls import boottime_ns

# An attempt's id becomes a file name: no separators, no leading dot, no room for tricks.
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def is_safe(name: str) -> bool:
    return _SAFE.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class AttemptDir:
    """Everything of one attempt, in a folder of its own: `work` is where its task runs.

    That the folder exists says that the attempt was accepted and not yet forgotten.
    """

    home: str
    work: str
    log: str
    result: str

    @property
    def refusal(self) -> str:
        """Why the task could not be begun: its exit code and one sentence, written by the attempt's own process."""
        return self.home + "/refusal"


@dataclass(frozen=True, slots=True)
class RuntimeLayout:
    """The runtime's root and what is in it."""

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
        """Held while a fork server or anything of its tasks lives."""
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
        """What setup commands keep for those who come after them."""
        return self.root / "environments"

    @property
    def pools(self) -> Path:
        return self.root / "pools"

    @property
    def spare(self) -> Path:
        """Folders of forgotten attempts, emptied for others (`spares`)."""
        return self.root / "spare"

    @property
    def trash(self) -> Path:
        """What was forgotten, until the worker has the time to empty or delete it."""
        return self.root / "trash"

    def attempt(self, attempt: str) -> AttemptDir:
        home = f"{self.root}/attempts/{attempt}"
        return AttemptDir(home, f"{home}/work", f"{home}/log", f"{home}/result")

    def discard(self, path: str) -> None:
        """Out of sight at once; deleting many files takes longer than the fork server may, so the worker does that."""
        try:
            os.rename(path, f"{self.trash}/{os.path.basename(path)}.{boottime_ns()}")
        except FileNotFoundError:
            return
        except OSError:
            # A full disk has no room for another name, and then it is worth the time.
            shutil.rmtree(path, ignore_errors=True)
