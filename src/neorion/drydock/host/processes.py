"""Processes of a cluster, found by a mark in their environment.

The kernel keeps that mark from the very start of a process to its end and passes it to its children. So there is no
record that could be lost between starting a process and writing down that it was started.
"""

import os
import select
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.network import reaching_clusters

# The cluster's folder, and the name of the part.
CLUSTER_MARK: Final = "NEORION_DRYDOCK_CLUSTER"
PART_MARK: Final = "NEORION_DRYDOCK_PART"
# An exec takes microseconds, but on a busy machine a process may be suspended in it: 50 ms in all.
_LOOKS: Final = 100
_BETWEEN_LOOKS_S: Final = 0.0005


@dataclass(frozen=True, slots=True)
class Component:
    """One process that belongs to a cluster. `env` adds to the inherited environment."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class RunningComponent:
    """A running process of a cluster: a part itself, or one that a part started."""

    pid: int
    part: str
    argv: tuple[str, ...]


def start(cluster: Path, part: Component, log: Path) -> int:
    """Starts a part in its own session, so that it outlives this process; its output goes to `log`."""
    marks = {CLUSTER_MARK: str(cluster), PART_MARK: part.name}
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), write, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    env = {**reaching_clusters(os.environ), **part.env, **marks}
    return os.posix_spawn(part.argv[0], list(part.argv), env, file_actions=files, setsid=True)


def running(cluster: Path, part: str | None = None) -> list[RunningComponent]:
    """The running processes of a cluster, or those of one part of it."""
    return [
        process for process, folder in _marked() if folder == str(cluster) and part in (None, process.part)
    ]


def marked_clusters() -> set[str]:
    """The folders of all clusters that have a process on this machine."""
    return {folder for _, folder in _marked()}


def alive(pid: int) -> bool:
    """True if a child of this process still runs; one that has ended is reaped."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    return Path(f"/proc/{pid}").exists()


async def end(cluster: Path, part: str | None = None, by: signal.Signals = signal.SIGKILL) -> None:
    """Ends all processes, and returns when none is left, including those started meanwhile."""
    while found := running(cluster, part):
        for process in found:
            await _end(process, str(cluster), by)


async def _end(process: RunningComponent, cluster: str, by: signal.Signals) -> None:
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # Read again while the pidfd is open, because the number may belong to another process by now.
        if _marks(process.pid).get(CLUSTER_MARK) != cluster:
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, by)
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)
    alive(process.pid)


def _marked() -> Iterator[tuple[RunningComponent, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        marks = _marks(int(entry.name))
        if CLUSTER_MARK in marks:
            argv = _strings(entry / "cmdline")
            yield (
                RunningComponent(int(entry.name), marks.get(PART_MARK, ""), tuple(argv)),
                marks[CLUSTER_MARK],
            )


def _marks(pid: int) -> dict[str, str]:
    pairs: Sequence[str] = _environment(Path(f"/proc/{pid}"))
    return dict(pair.split("=", 1) for pair in pairs if pair.startswith((CLUSTER_MARK, PART_MARK)))


def _environment(process: Path) -> list[str]:
    """Reads the environment. It is empty during exec; a process that keeps an empty one is not ours."""
    for _ in range(_LOOKS):
        found = _content(process / "environ")
        # A program may overwrite its environment with zeros: such a process is not waited for.
        if found or not _has_program(process):
            return _split(found)
        select.select((), (), (), _BETWEEN_LOOKS_S)
    return []


def _has_program(process: Path) -> bool:
    """True for a process with a program. Kernel threads and zombies have none."""
    try:
        return bool((process / "exe").readlink())
    except OSError:
        return False


def _strings(path: Path) -> list[str]:
    return _split(_content(path))


def _split(content: bytes) -> list[str]:
    return content.rstrip(b"\0").decode(errors="surrogateescape").split("\0")


def _content(path: Path) -> bytes:
    # Gone, or a process of another user: not one of ours.
    with suppress(OSError):
        return path.read_bytes()
    return b""
