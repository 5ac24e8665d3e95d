"""What one attempt may use, enforced by control groups; by resource limits where this process may not make groups.

Both versions of control groups are known. Groups are made below the fork server's own, so that whoever limits the worker
limits its tasks too.
"""

# ruff: noqa: PTH102, PTH106, PTH110, PTH116 -- see `files`: plain names, plain calls

import os
import resource
import signal
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from neorion.keel.telemetry import logger

log = logger(__name__)

# Threads count too: a node's worth of data loaders fits, and a fork bomb leaves most of the machine's pids to others.
PIDS_MAX = 8192
# What even a small task may have; each core it asks for brings a thousand more.
_PIDS_LEAST = 512
_PREFIX = "iris-"
_CPU_SHARES_PER_CORE = 1024
_CPU_SHARES_MIN = 2
_CPU_WEIGHT_PER_CORE = 100
_CPU_WEIGHT_MAX = 10_000
# A directory without others in it.
_NLINK_LEAF = 2
_READ_BYTES = 1 << 16
# As many as a worker is likely to run at once of what is short enough to matter.
IDLE_MAX = 64


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What an attempt asked for; 0 where it did not."""

    memory: int
    cpu_milli: int


def cpu_shares(cpu_milli: int) -> int:
    """The weight of so many cores. Idle cores are of use to all."""
    return max(cpu_milli * _CPU_SHARES_PER_CORE // 1000, _CPU_SHARES_MIN)


def pids_max(cpu_milli: int) -> int:
    return min(PIDS_MAX, _PIDS_LEAST + cpu_milli)


@dataclass(frozen=True, slots=True)
class CgroupManager:
    """The group below which each attempt gets its own, one directory per controller (version 2: one for all)."""

    version: int
    memory: str
    pids: str
    cpu: str

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.memory, self.pids, self.cpu)))

    def make(self, name: str, asked: ResourceLimits) -> None:
        """The attempt's group, empty as yet. Made by the fork server: a new process pays for every page it touches."""
        for parent in self.parents:
            os.mkdir(f"{parent}/{name}")
        for path, value in self._settings(name, asked):
            _write(path, value)

    def join(self, name: str) -> None:
        """Moves this process, alone and of one thread as yet, into the attempt's group.

        A thread may move itself without the lock that stops every fork of the machine; waiting for it takes up to tens of
        milliseconds. Version 2 has that way for threaded groups only.
        """
        file = "cgroup.procs" if self.version == 2 else "tasks"
        for parent in self.parents:
            _write(f"{parent}/{name}/{file}", "0")

    def ran_out_of_memory(self, name: str) -> bool:
        """Whether the kernel killed anything of the attempt for want of memory."""
        file = "memory.events" if self.version == 2 else "memory.oom_control"
        try:
            lines = _read(f"{self.memory}/{name}/{file}").splitlines()
        except OSError:
            return False
        return any(line.startswith(b"oom_kill ") and line != b"oom_kill 0" for line in lines)

    def as_new(self, name: str, asked: ResourceLimits) -> bool:
        """Whether another attempt may have this group: nobody is in it or below it, and next to nothing is charged to it.

        What a task leaves in a memory file system stays charged to its group when it has ended.
        """
        usage = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        try:
            return (
                not _read(f"{self.pids}/{name}/cgroup.procs")
                and (not asked.memory or int(_read(f"{self.memory}/{name}/{usage}")) <= asked.memory // 16)
                and not self.ran_out_of_memory(name)
                and all(os.stat(f"{parent}/{name}").st_nlink == _NLINK_LEAF for parent in self.parents)
            )
        except OSError:
            return False

    def kill(self, name: str) -> None:
        """Everything in the attempt's group, at once however fast it forks: first it may not, then it is killed."""
        with suppress(OSError):
            _write(f"{self.pids}/{name}/pids.max", "0")
            for pid in Path(self.pids, name, "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def remove(self, name: str) -> None:
        """A group whose last process is still being buried stays, and is swept when all are."""
        for parent in self.parents:
            try:
                os.rmdir(f"{parent}/{name}")
            except OSError:
                _clear(f"{parent}/{name}")

    def sweep(self) -> None:
        """Removes every group of which nothing is left, and the one above them."""
        for parent in self.parents:
            _clear(parent)

    def sweep_after_the_dead(self) -> None:
        """What others left beside these, who were killed together with their guardians."""
        for parent in map(Path, self.parents):
            for path in parent.parent.glob(f"{_PREFIX}*"):
                owner = path.name.removeprefix(_PREFIX)
                if owner.isdigit() and not Path("/proc", owner).exists():
                    _clear(str(path))

    def _settings(self, name: str, asked: ResourceLimits) -> Iterator[tuple[str, str]]:
        yield f"{self.pids}/{name}/pids.max", str(pids_max(asked.cpu_milli))
        cores = asked.cpu_milli / 1000
        if self.version == 2:
            if asked.memory:
                yield f"{self.memory}/{name}/memory.max", str(asked.memory)
                yield from _where_known(f"{self.memory}/{name}/memory.swap.max", "0")
            if cores:
                weight = round(cores * _CPU_WEIGHT_PER_CORE)
                yield f"{self.cpu}/{name}/cpu.weight", str(min(max(weight, 1), _CPU_WEIGHT_MAX))
            return
        if asked.memory:
            yield f"{self.memory}/{name}/memory.limit_in_bytes", str(asked.memory)
            yield from _where_known(f"{self.memory}/{name}/memory.memsw.limit_in_bytes", str(asked.memory))
        if cores:
            yield f"{self.cpu}/{name}/cpu.shares", str(cpu_shares(asked.cpu_milli))


class CgroupCache:
    """The groups of attempts that have ended, for others that ask for the same: to make and remove them costs half a fork."""

    def __init__(self, groups: CgroupManager) -> None:
        self._groups = groups
        self._made = 0
        self._taken: dict[str, ResourceLimits] = {}
        self._idle: OrderedDict[str, ResourceLimits] = OrderedDict()

    def take(self, asked: ResourceLimits) -> str:
        name = next((name for name, limits in self._idle.items() if limits == asked), "")
        if name:
            del self._idle[name]
        else:
            self._made += 1
            name = f"task-{self._made}"
            self._groups.make(name, asked)
        self._taken[name] = asked
        return name

    def kill(self, name: str) -> None:
        """Everything in it; nobody gets it after that."""
        self._taken.pop(name, None)
        self._groups.kill(name)

    def give_back(self, name: str) -> None:
        asked = self._taken.pop(name, None)
        if asked is None or not self._groups.as_new(name, asked):
            self._groups.remove(name)
            return
        self._idle[name] = asked
        if len(self._idle) > IDLE_MAX:
            # The one that nobody has asked for the longest.
            self._groups.remove(self._idle.popitem(last=False)[0])


def _clear(group: str) -> None:
    """With the groups that tasks made below theirs. One in which something still lives stays."""
    for path, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            os.rmdir(path)


def _where_known(path: str, value: str) -> Iterator[tuple[str, str]]:
    """Swap is limited where the kernel counts it."""
    if os.path.exists(path):
        yield path, value


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _READ_BYTES)
    finally:
        os.close(fd)


def _write(path: str, value: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def find() -> CgroupManager | None:
    """The groups this process may make, which have its number in their name, or None, said once in the log."""
    name = f"{_PREFIX}{os.getpid()}"
    try:
        groups = _version_1(name) or _version_2(name)
        groups.sweep()
        groups.sweep_after_the_dead()
        for parent in map(Path, groups.parents):
            parent.mkdir(exist_ok=True)
        _enable(groups)
    except (OSError, LookupError) as error:
        log.warning("control groups are not ours to make; tasks get resource limits", why=str(error))
        return None
    return groups


def join_limits(asked: ResourceLimits) -> None:
    """Without groups: memory by process, and processes by user, which the kernel does not hold against root."""
    if asked.memory:
        resource.setrlimit(resource.RLIMIT_DATA, (asked.memory, asked.memory))
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = PIDS_MAX if hard == resource.RLIM_INFINITY else min(PIDS_MAX, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _version_1(name: str) -> CgroupManager | None:
    own = _own_groups()
    if not {"memory", "pids", "cpu"} <= own.keys():
        return None
    mounts = _mounts()
    memory, pids, cpu = (str(mounts[key] / own[key] / name) for key in ("memory", "pids", "cpu"))
    return CgroupManager(1, memory, pids, cpu)


def _version_2(name: str) -> CgroupManager:
    path = str(_mounts()[""] / _own_groups()[""] / name)
    return CgroupManager(2, path, path, path)


def _enable(groups: CgroupManager) -> None:
    """Version 2 hands controllers down one level at a time; this fails where processes live in between."""
    if groups.version == 2:
        below = Path(groups.memory)
        for path in (below.parent, below):
            (path / "cgroup.subtree_control").write_text("+memory +pids +cpu")


def _own_groups() -> dict[str, str]:
    """Controller → the group of this process, relative to where the controller is mounted; "" is version 2."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    return found


def _mounts() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        path = Path(left.split(" ")[4])
        if kind == "cgroup2":
            found[""] = path
        elif kind == "cgroup":
            found |= dict.fromkeys(options.split(","), path)
    return found
