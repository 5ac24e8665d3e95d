"""Starts the process of an attempt: forked from the fork server, or spawned where nothing of it is needed."""

# ruff: noqa: PTH102 -- see `files`: plain names, plain calls

import os
import signal
import socket
from dataclasses import dataclass

from neorion.iris.adapters.runtimes.process import child, surroundings
from neorion.iris.adapters.runtimes.process.child import Host
from neorion.iris.adapters.runtimes.process.surroundings import NOT_RUNNABLE, NotStarted
from neorion.iris.adapters.runtimes.process.wire import Job

# Python changes these for itself; a program gets them as the kernel made them.
_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


@dataclass(frozen=True, slots=True)
class Launched:
    """A new process. `started`, where it is not -1, is a pipe that tells when the task begins; until then it prepares."""

    pid: int
    started: int = -1


def open_log(host: Host, attempt: str) -> int:
    return os.open(host.files.log(attempt), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def spawns(job: Job) -> bool:
    """A bare program needs no copy of this interpreter: a third of the work of a fork."""
    return bool(job.argv) and not job.prepares and not job.limited


def spawn(job: Job, host: Host, log: int) -> Launched:
    """Its orphans become children of the fork server while it still runs, known by their mark (`tree.owner`)."""
    work = host.files.attempt(job.attempt).work
    os.mkdir(work)
    found = surroundings.variables(job, work)
    # This process has one thread: its directory is free to be lent to the program for a moment.
    os.chdir(work)
    try:
        path = surroundings.program(job.argv, found)
        pid = os.posix_spawn(
            path,
            job.argv,
            found,
            file_actions=[(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
            setsid=True,
            setsigdef=_SIGNALS,
        )
    except OSError as error:
        raise surroundings.unrunnable(job.argv, error) from error
    finally:
        os.chdir("/")
    return Launched(pid)


def fork(job: Job, host: Host, log: int) -> Launched:
    started, begun = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) if job.prepares else (-1, -1)
    pid = _fork()
    if pid == 0:
        child.run_attempt(job, host, log, begun)
    if begun >= 0:
        os.close(begun)
    return Launched(pid, started)


def fork_pool(host: Host, group: str, log: int) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    pid = _fork()
    if pid == 0:
        child.run_pool(host, group, theirs, log)
    theirs.close()
    return pid, ours


def _fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise NotStarted(
            NOT_RUNNABLE, f"The worker cannot make another process: {error.strerror}."
        ) from error
