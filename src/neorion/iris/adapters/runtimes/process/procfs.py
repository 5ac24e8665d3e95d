"""Process trees from /proc, and how to end them completely."""

import os
import signal
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

# Environment variable that identifies a process that has left its parent and its session.
MARK = "IRIS_ATTEMPT_UID"
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# A process that was just read may have ended, and its pid may belong to another one.
_GONE = (ProcessLookupError, FileNotFoundError)


@dataclass(frozen=True, slots=True)
class ProcStat:
    """One line of /proc/<pid>/stat. `born` distinguishes a process from a later one with the same pid."""

    pid: int
    parent: int
    session: int
    born: int
    dead: bool
    cpu_ticks: int
    memory_pages: int

    @property
    def cpu_seconds(self) -> float:
        return self.cpu_ticks / _TICKS_PER_S

    @property
    def memory_bytes(self) -> int:
        return self.memory_pages * _PAGE_BYTES


def read(pid: int) -> ProcStat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 -- read for every process of the machine at once
            text = file.read()
    except (*_GONE, PermissionError):
        return None
    # The name is in parentheses and may contain any character, including parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return ProcStat(
        pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        born=int(fields[19]),
        dead=fields[0] in (b"Z", b"X"),
        cpu_ticks=int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14]),
        memory_pages=int(fields[21]),
    )


def below(roots: Iterable[int]) -> list[ProcStat]:
    """The roots and all their descendants, parents first, without zombies."""
    return [process for family in families(roots).values() for process in family]


def families(roots: Iterable[int]) -> dict[int, list[ProcStat]]:
    """Descendants per existing root, from one scan of all processes."""
    children: dict[int, list[ProcStat]] = {}
    found: dict[int, list[ProcStat]] = {}
    roots = set(roots)
    for process in _all():
        if process.pid in roots:
            found[process.pid] = [process]
        else:
            children.setdefault(process.parent, []).append(process)
    for family in found.values():
        for process in family:
            family.extend(children.get(process.pid, ()))
    return {root: [process for process in family if not process.dead] for root, family in found.items()}


def children(pid: int) -> set[int]:
    """Children of a single-threaded process, including zombies."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:  # noqa: PTH123 -- read at each end of a task
            return {int(child) for child in file.read().split()}
    except FileNotFoundError:
        # Kernels without this file: slower, with the same result.
        return {process.pid for process in _all() if process.parent == pid}


def send(processes: Iterable[ProcStat], number: signal.Signals) -> None:
    for process in processes:
        with suppress(*_GONE):
            handle = os.pidfd_open(process.pid)
            try:
                now = read(process.pid)
                if now is not None and now.born == process.born:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def kill(roots: Collection[int], spare: Collection[int] = ()) -> None:
    """Kills the roots and all descendants. Processes are stopped first, so that they cannot fork meanwhile.

    Roots are children that the caller has not reaped, so their pids are not reused. They are stopped before /proc is
    read, because the scan takes longer than a generation of quick forks.
    """
    for pid in set(roots).difference(spare):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    stopped: dict[tuple[int, int], ProcStat] = {}
    while fresh := [
        process
        for process in below(roots)
        if (process.pid, process.born) not in stopped and process.pid not in spare
    ]:
        send(fresh, signal.SIGSTOP)
        stopped.update({(process.pid, process.born): process for process in fresh})
    send(stopped.values(), signal.SIGKILL)


def owner(pid: int) -> str:
    """Attempt that a process belongs to, from its environment; "" if there is none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 -- read for every process of the machine at once
            variables = file.read().split(b"\0")
    except (*_GONE, PermissionError):
        return ""
    prefix = MARK.encode() + b"="
    return next((text[len(prefix) :].decode() for text in variables if text.startswith(prefix)), "")


def _all() -> Iterator[ProcStat]:
    for name in os.listdir("/proc"):  # noqa: PTH208 -- names are all that is needed
        if name.isdigit() and (process := read(int(name))) is not None:
            yield process
