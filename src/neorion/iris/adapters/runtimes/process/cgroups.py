"""Resource limits of attempts: control groups, or rlimits where this process may not create groups.

Both versions of control groups are supported. Groups are children of the fork server's own, so that a limit of the worker
also limits its tasks.
"""

# ruff: noqa: PTH102, PTH106, PTH110, PTH116 -- see `layout`: plain names, plain calls

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

# Includes threads: enough for the data loaders of a node, and a fork bomb leaves most pids to other processes.
PIDS_MAX = 8192
# Minimum for a small task; each requested core adds a thousand.
_PIDS_LEAST = 512
_PREFIX = "iris-"
_CPU_SHARES_PER_CORE = 1024
_CPU_SHARES_MIN = 2
_CPU_WEIGHT_PER_CORE = 100
_CPU_WEIGHT_MAX = 10_000
# Link count of a directory without subdirectories.
_NLINK_LEAF = 2
_READ_BYTES = 1 << 16
# Number of short attempts that a worker is likely to run at once.
IDLE_MAX = 64


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Limits of an attempt; 0 means none."""

    memory: int
    cpu_milli: int


def pids_max(cpu_milli: int) -> int:
    return min(PIDS_MAX, _PIDS_LEAST + cpu_milli)


@dataclass(frozen=True, slots=True)
class CgroupManager:
    """Parent group of all attempts: one directory per controller (version 2: one for all)."""

    version: int
    memory: str
    pids: str
    cpu: str

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.memory, self.pids, self.cpu)))

    def make(self, name: str, limits: ResourceLimits) -> None:
        """Creates an attempt's group. The fork server does this, because a new process pays for every page it touches."""
        for parent in self.parents:
            os.mkdir(f"{parent}/{name}")
        for path, value in self._settings(name, limits):
            _write(path, value)

    def join(self, name: str) -> None:
        """Moves this single-threaded process into the attempt's group.

        A thread can move itself without the lock that blocks every fork of the machine, which may take tens of
        milliseconds. Version 2 supports this only for threaded groups.
        """
        file = "cgroup.procs" if self.version == 2 else "tasks"
        for parent in self.parents:
            _write(f"{parent}/{name}/{file}", "0")

    def ran_out_of_memory(self, name: str) -> bool:
        """True if the kernel killed a process of the attempt for lack of memory."""
        file = "memory.events" if self.version == 2 else "memory.oom_control"
        try:
            lines = _read(f"{self.memory}/{name}/{file}").splitlines()
        except OSError:
            return False
        return any(line.startswith(b"oom_kill ") and line != b"oom_kill 0" for line in lines)

    def is_reusable(self, name: str, limits: ResourceLimits) -> bool:
        """True if another attempt may use this group: it has no processes or subgroups, and almost no charged memory.

        Files that a task leaves in a memory file system stay charged to its group.
        """
        usage = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        try:
            return (
                not _read(f"{self.pids}/{name}/cgroup.procs")
                and (not limits.memory or int(_read(f"{self.memory}/{name}/{usage}")) <= limits.memory // 16)
                and not self.ran_out_of_memory(name)
                and all(os.stat(f"{parent}/{name}").st_nlink == _NLINK_LEAF for parent in self.parents)
            )
        except OSError:
            return False

    def kill(self, name: str) -> None:
        """Kills all processes of the group. New forks are forbidden first, so that none can escape."""
        with suppress(OSError):
            _write(f"{self.pids}/{name}/pids.max", "0")
            for pid in Path(self.pids, name, "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def remove(self, name: str) -> None:
        """Removes a group. One whose last process is not reaped yet is left for `sweep`."""
        for parent in self.parents:
            try:
                os.rmdir(f"{parent}/{name}")
            except OSError:
                _clear(f"{parent}/{name}")

    def sweep(self) -> None:
        """Removes all empty groups and the parent group."""
        for parent in self.parents:
            _clear(parent)

    def sweep_abandoned(self) -> None:
        """Removes groups of fork servers that were killed together with their supervisors."""
        for parent in map(Path, self.parents):
            for path in parent.parent.glob(f"{_PREFIX}*"):
                owner = path.name.removeprefix(_PREFIX)
                if owner.isdigit() and not Path("/proc", owner).exists():
                    _clear(str(path))

    def _settings(self, name: str, limits: ResourceLimits) -> Iterator[tuple[str, str]]:
        yield f"{self.pids}/{name}/pids.max", str(pids_max(limits.cpu_milli))
        cores = limits.cpu_milli / 1000
        if self.version == 2:
            if limits.memory:
                yield f"{self.memory}/{name}/memory.max", str(limits.memory)
                yield from _if_supported(f"{self.memory}/{name}/memory.swap.max", "0")
            if cores:
                weight = round(cores * _CPU_WEIGHT_PER_CORE)
                yield f"{self.cpu}/{name}/cpu.weight", str(min(max(weight, 1), _CPU_WEIGHT_MAX))
            return
        if limits.memory:
            yield f"{self.memory}/{name}/memory.limit_in_bytes", str(limits.memory)
            yield from _if_supported(f"{self.memory}/{name}/memory.memsw.limit_in_bytes", str(limits.memory))
        if cores:
            shares = max(round(cores * _CPU_SHARES_PER_CORE), _CPU_SHARES_MIN)
            yield f"{self.cpu}/{name}/cpu.shares", str(shares)


class CgroupCache:
    """Cache of groups of ended attempts, because creating and removing groups costs half a fork."""

    def __init__(self, groups: CgroupManager) -> None:
        self._groups = groups
        self._made = 0
        self._taken: dict[str, ResourceLimits] = {}
        self._idle: OrderedDict[str, ResourceLimits] = OrderedDict()

    def take(self, limits: ResourceLimits) -> str:
        name = next((name for name, idle in self._idle.items() if idle == limits), "")
        if name:
            del self._idle[name]
        else:
            self._made += 1
            name = f"task-{self._made}"
            self._groups.make(name, limits)
        self._taken[name] = limits
        return name

    def kill(self, name: str) -> None:
        """Kills all processes of the group, which is not reused afterwards."""
        self._taken.pop(name, None)
        self._groups.kill(name)

    def release(self, name: str) -> None:
        limits = self._taken.pop(name, None)
        if limits is None or not self._groups.is_reusable(name, limits):
            self._groups.remove(name)
            return
        self._idle[name] = limits
        if len(self._idle) > IDLE_MAX:
            # The least recently used one.
            self._groups.remove(self._idle.popitem(last=False)[0])


def _clear(group: str) -> None:
    """Removes a group and the groups that tasks created below it. A group with processes stays."""
    for path, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            os.rmdir(path)


def _if_supported(path: str, value: str) -> Iterator[tuple[str, str]]:
    """Yields the setting if the kernel supports it, e.g. the accounting of swap."""
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
    """Groups of this process, with its pid in their name, or None with a log message if it may not create any."""
    name = f"{_PREFIX}{os.getpid()}"
    try:
        groups = _version_1(name) or _version_2(name)
        groups.sweep()
        groups.sweep_abandoned()
        for parent in map(Path, groups.parents):
            parent.mkdir(exist_ok=True)
        _enable(groups)
    except (OSError, LookupError) as error:
        log.warning("control groups are not ours to make; tasks get resource limits", why=str(error))
        return None
    return groups


def join_limits(limits: ResourceLimits) -> None:
    """Limits without groups: memory per process, and processes per user, which the kernel does not apply to root."""
    if limits.memory:
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))
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
    """Enables controllers, in version 2 one level at a time. It fails if a level in between has processes."""
    if groups.version == 2:
        below = Path(groups.memory)
        for path in (below.parent, below):
            (path / "cgroup.subtree_control").write_text("+memory +pids +cpu")


def _own_groups() -> dict[str, str]:
    """Group of this process per controller, relative to the controller's mount; "" is the key of version 2."""
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
