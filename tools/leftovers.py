"""Removes what killed test runs left on this machine: processes, clusters with their networks and control groups, folders.

Each process of a run carries the run's mark in its environment: the id and the start time of its pytest. Nothing is
touched that belongs to a run whose pytest is alive, or that has no mark. The folder of a local cluster of iris carries
the id of its client instead, in its name.
"""

import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.binaries import BinaryCache
from neorion.drydock.clusters import ClusterManager
from neorion.drydock.host.processes import CLUSTER_MARK
from neorion.drydock.slots import CLAIMS
from neorion.drydock.testing import is_shared, remove_unused
from neorion.keel.clock import SystemClock

MARK: Final = "NEORION_TEST_RUN"
_CGROUPS: Final = Path("/sys/fs/cgroup")
_OWN_CLUSTER: Final = re.compile(r"test-[0-9a-f]{8}-(\d+)")
_FOLDER: Final = "neorion-test-"
# Of tests, and of the clusters that `IrisClient.local` starts.
_OWNED_FOLDER: Final = re.compile(rf"(?:{_FOLDER}|iris-)(\d+)-\w+")


def mark_this_run() -> None:
    """Puts the mark into the environment, for all processes to come. A live run that started us keeps its own."""
    if MARK not in os.environ or _is_over(os.environ[MARK]):
        os.environ[MARK] = f"{os.getpid()}:{_started(os.getpid())}"


def temporary_folder_prefix() -> str:
    """Of folders outside pytest's own, whose names are too long for sockets."""
    return f"{_FOLDER}{os.environ.get(MARK, str(os.getpid())).partition(':')[0]}-"


def remove_leftovers() -> list[str]:
    """Returns what was removed, in words."""
    removed = list[str]()
    processes = {pid: env for pid, env in _environments() if _is_over(env.get(MARK, ""))}
    clusters = {Path(env[CLUSTER_MARK]) for env in processes.values() if CLUSTER_MARK in env}
    for pid, env in processes.items():
        if CLUSTER_MARK not in env and _kill(pid, env[MARK]):
            removed.append(f"process {pid}")
    for folder in sorted(clusters | set(_claimed_by_the_dead())):
        if _remove_cluster(folder):
            removed.append(f"cluster {folder}")
    removed += [f"control group {path}" for path in _empty_groups()]
    return removed + [f"folder {path}" for path in _folders_of_the_dead()]


def _started(pid: int) -> str:
    """When a process began, in the kernel's ticks: a process with the same number later began later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _is_over(run: str) -> bool:
    pid, _, started = run.partition(":")
    return pid.isdecimal() and started.isdecimal() and _started(int(pid)) != started


def _is_dead(pid: str) -> bool:
    return pid.isdecimal() and not Path("/proc", pid).exists()


def _environments() -> Iterator[tuple[int, dict[str, str]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (env := _environment(int(entry.name))):
            yield int(entry.name), env


def _environment(pid: int) -> dict[str, str]:
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    pairs = (pair.partition("=") for pair in content.split("\0"))
    return {name: value for name, _, value in pairs if name in {MARK, CLUSTER_MARK}}


def _kill(pid: int, run: str) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # Read again while the handle is held: the number may have come to mean another process.
        if _environment(pid).get(MARK) != run:
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _folders_of_the_dead() -> Iterator[Path]:
    """Removes temporary folders that are named after a dead process and that no command line names."""
    for path in sorted(Path(tempfile.gettempdir()).iterdir()):
        owned = _OWNED_FOLDER.fullmatch(path.name)
        if owned and _is_dead(owned[1]) and not _is_in_use(path):
            shutil.rmtree(path, ignore_errors=True)
            yield path


def _is_in_use(folder: Path) -> bool:
    """A cluster outlives its client while a fork of that client lives."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(folder) in file.read_bytes():
                return True
    return False


def _claimed_by_the_dead() -> Iterator[Path]:
    """Clusters that may have no process any more, only a network."""
    for link in CLAIMS.glob("*"):
        with suppress(OSError):
            folder = link.readlink()
            if folder.is_dir() and _was_of_a_dead_run(folder):
                yield folder


def _was_of_a_dead_run(folder: Path) -> bool:
    if own := _OWN_CLUSTER.fullmatch(folder.name):
        return _is_dead(own[1])
    for parent in folder.parents:
        # pytest keeps its process's id in the lock of its folder, and removes the lock in the end.
        if re.fullmatch(r"pytest-\d+", parent.name) and parent.parent.name.startswith("pytest-of-"):
            lock = parent / ".lock"
            return not lock.exists() or _is_dead(lock.read_text())
    return False


def _remove_cluster(folder: Path) -> bool:
    yard = ClusterManager(folder.parent, BinaryCache.of(), SystemClock())
    if is_shared(folder.name):
        return remove_unused(folder.name, yard)
    anyio.run(yard.down, folder.name)
    return True


def _empty_groups() -> Iterator[Path]:
    """Removes the groups of fork servers that are dead, where nothing is left in them."""
    for path in [*_CGROUPS.glob("iris-*"), *_CGROUPS.glob("*/iris-*"), *_CGROUPS.glob("memory/**/iris-*")]:
        if not _is_dead(path.name.removeprefix("iris-")):
            continue
        for folder, _, _ in os.walk(path, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
        if not path.exists():
            yield path
