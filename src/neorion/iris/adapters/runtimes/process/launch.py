"""Starts the process of an attempt: forked from the fork server, or spawned where nothing of it is needed."""

import os
import signal
import socket

from neorion.iris.adapters.runtimes.process import child, limits, surroundings
from neorion.iris.adapters.runtimes.process.child import Host, Ready
from neorion.iris.adapters.runtimes.process.surroundings import NOT_RUNNABLE, NotStarted
from neorion.iris.adapters.runtimes.process.wire import Job

# Python changes these for itself; a program gets them as the kernel made them.
_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)


def limit(job: Job, host: Host, group: str) -> None:
    """Makes the group that the job's process will join."""
    if group and host.groups is not None:
        host.groups.make(group, limits.Asked(job.memory, job.cpu_milli))


def open_log(host: Host, attempt: str) -> int:
    return os.open(host.files.log(attempt), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def spawns(job: Job) -> bool:
    """A bare program needs no copy of this interpreter: a third of the work of a fork."""
    return bool(job.argv) and not job.prepares and not job.limited


def spawn(job: Job, host: Host, log: int) -> int:
    """Its orphans become children of the fork server while it still runs, known by their mark (`tree.owner`)."""
    work = host.files.attempt(job.attempt).work
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
    return pid


def ready(job: Job, host: Host, group: str) -> Ready:
    """Makes everything that the attempt's process will find."""
    place = host.files.attempt(job.attempt)
    limit(job, host, group)
    found = surroundings.variables(job, place.work)
    log = open_log(host, job.attempt)
    if not job.prepares:
        return Ready(job, place, found, log)
    try:
        started, begun = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        os.close(log)
        raise
    return Ready(job, place, found, log, begun, started)


def fork(one: Ready, host: Host) -> int | NotStarted:
    try:
        pid = os.fork()
    except OSError as error:
        return _no_more(error)
    if pid == 0:
        child.run_attempt(one, host)
    return pid


def fork_pool(host: Host, group: str, log: int) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    try:
        pid = os.fork()
    except OSError as error:
        raise _no_more(error) from error
    if pid == 0:
        child.run_pool(host, group, theirs, log)
    theirs.close()
    return pid, ours


def _no_more(error: OSError) -> NotStarted:
    return NotStarted(NOT_RUNNABLE, f"The worker cannot make another process: {error.strerror}.")
