"""Control groups, by which the processes of a node are found, counted and ended.

A process cannot leave its group by forking, so a group's name, written down before the first process starts, is enough
to end all of them, even if the program that started them is gone.
"""

import errno
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.keel.base import Duration, Retry
from neorion.keel.clock import Clock

ROOT: Final = Path("/sys/fs/cgroup")
# The controllers that kubelets divide among pods. A unified hierarchy needs them enabled for children.
_CONTROLLERS: Final = ("cpu", "cpuset", "io", "memory", "pids")
# A killed process leaves its group within milliseconds; a busy disk may delay it.
_END_STEPS: Final = 500
_END_STEP: Final = Duration.of(ms=10)
# The group still has processes, or got a child group meanwhile.
_OCCUPIED: Final = frozenset({errno.EBUSY, errno.ENOTEMPTY})


@dataclass(frozen=True, slots=True)
class Cgroups:
    """All hierarchies of this machine: one with cgroup v2, a dozen with v1."""

    root: Path = ROOT

    def hierarchies(self) -> list[Path]:
        if (self.root / "cgroup.controllers").exists():
            return [self.root]
        # Some hierarchies have a second name that is only a link.
        return sorted(path for path in self.root.iterdir() if path.is_dir() and not path.is_symlink())

    def make(self, name: str) -> None:
        for hierarchy in self.hierarchies():
            folder = hierarchy
            for part in name.split("/"):
                _enable_controllers(folder)
                parent, folder = folder, folder / part
                folder.mkdir(exist_ok=True)
                _fill_cpuset(parent, folder)

    def entries(self, name: str) -> list[Path]:
        """The files to which a process writes its id to join."""
        return [hierarchy / name / "cgroup.procs" for hierarchy in self.hierarchies()]

    def pids(self, name: str) -> set[int]:
        """All processes in the group and below."""
        found = set[int]()
        for hierarchy in self.hierarchies():
            for folder in _tree(hierarchy / name):
                found |= _read_pids(folder / "cgroup.procs")
        return found

    async def end(self, name: str, clock: Clock) -> None:
        """Kills all processes in the group and below, and removes it. Accepts a group that is gone."""
        for _ in range(_END_STEPS):
            for pid in self.pids(name):
                _kill(pid)
            if self._removed(name):
                return
            await clock.sleep(_END_STEP)
        raise Retry(
            "machine.group_stays",
            f"The control group {name} did not become empty.",
            hint="Try again; if it stays, a process in it hangs in the kernel (ps -o pid,stat,wchan).",
        )

    def _removed(self, name: str) -> bool:
        done = True
        for hierarchy in self.hierarchies():
            for folder in _tree(hierarchy / name):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    continue
                except OSError as error:
                    if error.errno not in _OCCUPIED:
                        raise
                    done = False
        return done


def _tree(folder: Path) -> Iterator[Path]:
    """The folders below, deepest first, as they have to be removed."""
    for path, _, _ in os.walk(folder, topdown=False):
        yield Path(path)


def _read_pids(procs: Path) -> set[int]:
    try:
        return {int(line) for line in procs.read_text().split()}
    except OSError:
        # The group ended between being listed and being read.
        return set()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _enable_controllers(folder: Path) -> None:
    switch = folder / "cgroup.subtree_control"
    available = folder / "cgroup.controllers"
    if available.exists() and switch.exists():
        offered = set(available.read_text().split())
        wanted = [f"+{name}" for name in _CONTROLLERS if name in offered]
        if wanted:
            switch.write_text(" ".join(wanted))


def _fill_cpuset(parent: Path, folder: Path) -> None:
    """Copies the parent's CPUs: cgroup v1 gives a new cpuset none, and then no process may join it."""
    if (folder / "cgroup.controllers").exists():
        return
    for name in ("cpuset.cpus", "cpuset.mems"):
        mine = folder / name
        if mine.exists() and not mine.read_text().strip():
            mine.write_text((parent / name).read_text())
