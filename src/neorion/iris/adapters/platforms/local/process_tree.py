"""All that belongs to a machine: its worker, what the worker started, and what went on without it."""

import os
import signal
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from neorion.iris.adapters.platforms.local.machine import LocalMachine
from neorion.iris.adapters.platforms.local.pidfd import PidfdProcess, boot_id, stat_of
from neorion.iris.adapters.platforms.local.slice_store import ProcessIdentity
from neorion.keel.telemetry import logger

log = logger(__name__)

# Each round finds only what was forked while the one before it looked; what outruns these outruns everything.
_ROUNDS_MAX = 20


@dataclass(frozen=True, slots=True)
class _ProcStat:
    birth: ProcessIdentity
    parent: int
    session: int
    marked: bool


def end_tree(machine: LocalMachine, worker: ProcessIdentity, known: Collection[ProcessIdentity] = ()) -> None:
    """Kills everything of a machine, and what was `known` to be of it. Reads all of /proc: call it in a thread."""
    stopped: dict[ProcessIdentity, PidfdProcess] = {}
    try:
        # Stopped first: otherwise the process that is killed last could have forked meanwhile.
        for _ in range(_ROUNDS_MAX):
            fresh = {birth for birth in members(machine, worker, known) if birth not in stopped}
            if not fresh:
                break
            for birth in fresh:
                if (process := PidfdProcess.find(birth)) is not None:
                    stopped[birth] = process
                    process.signal(signal.SIGSTOP)
        else:
            log.warning("a machine forks faster than it can be stopped", host=machine.host)
        for process in stopped.values():
            process.signal(signal.SIGKILL)
    finally:
        for process in stopped.values():
            process.close()


def members(
    machine: LocalMachine, worker: ProcessIdentity, known: Collection[ProcessIdentity] = ()
) -> set[ProcessIdentity]:
    """Processes with the machine's mark, and all that descend from its processes or share a session with them.

    A process with neither cannot be found once its parent is gone, so call this before the worker ends.
    """
    rows = {row.birth.pid: row for row in _processes(os.fsencode("=".join(machine.mark)))}
    found = {pid for pid, row in rows.items() if row.marked or row.birth == worker or row.birth in known}
    # A session keeps its id while it has a process, so it is the worker's unless the worker's pid was used again.
    sessions = {worker.pid} if worker.boot == boot_id() and rows.get(worker.pid) is None else set[int]()
    while True:
        sessions |= {pid for pid in found if rows[pid].session == pid}
        more = {pid for pid, row in rows.items() if row.parent in found or row.session in sessions} - found
        if not more:
            return {rows[pid].birth for pid in found}
        found |= more


def _processes(mark: bytes) -> Iterator[_ProcStat]:
    boot, ourselves = boot_id(), os.getpid()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == ourselves:
            continue
        pid = int(folder.name)
        stat = stat_of(pid)
        if stat is not None and stat[0] not in "ZX":
            birth = ProcessIdentity(pid, int(stat[19]), boot)
            yield _ProcStat(birth, int(stat[1]), int(stat[3]), mark in _environment(folder))


def _environment(folder: Path) -> list[bytes]:
    try:
        return (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        # Owned by another user, or gone.
        return []
