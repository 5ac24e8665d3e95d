"""Starts the process of an attempt: by fork, or by spawn for a program that needs nothing of the fork server."""

import os
import signal
import socket
from dataclasses import replace
from functools import lru_cache

from neorion.iris.adapters.runtimes.process import environ
from neorion.iris.adapters.runtimes.process.environ import NOT_RUNNABLE, TaskStartError
from neorion.iris.adapters.runtimes.process.layout import AttemptDir
from neorion.iris.adapters.runtimes.process.protocol import StartRequest
from neorion.iris.adapters.runtimes.process.syscalls import EnvBlock
from neorion.iris.adapters.runtimes.process.task import main
from neorion.iris.adapters.runtimes.process.task.main import ForkServerInfo, PreparedTask

# Python changes these signals for itself; a program gets the kernel's defaults.
_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
_SMALL_BYTES = 1 << 14


def open_log(place: AttemptDir) -> int:
    return os.open(place.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def can_spawn(job: StartRequest) -> bool:
    """True for a plain program: it needs no copy of this interpreter, and spawn takes a third of the time of a fork."""
    return bool(job.argv) and not job.prepares and not job.limited


def spawn(job: StartRequest, host: ForkServerInfo, log: int) -> int:
    """Spawns a program. Its orphans become children of the fork server, identified by their mark (`procfs.owner`)."""
    work = host.files.attempt(job.attempt).work
    found = environ.variables(job, work)
    # This process has one thread, so its directory can be changed for a moment.
    os.chdir(work)
    try:
        path = environ.program(job.argv, found)
        pid = os.posix_spawn(
            path,
            job.argv,
            found,
            file_actions=[(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
            setsid=True,
            setsigdef=_SIGNALS,
        )
    except OSError as error:
        raise environ.unrunnable(job.argv, error) from error
    finally:
        os.chdir("/")
    return pid


def prepare(job: StartRequest, host: ForkServerInfo, group: str) -> PreparedTask:
    """Prepares everything that the attempt's process needs. `group` is the control group that it joins."""
    place = host.files.attempt(job.attempt)
    found = environ.variables(job, place.work)
    function = b"" if job.argv else _read_small(job.function)
    log = open_log(place)
    one = PreparedTask(job, place, found, EnvBlock(found), function, group, log)
    if not job.prepares:
        return one
    try:
        started, begun = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        os.close(log)
        raise
    return replace(one, begun=begun, started=started)


@lru_cache(maxsize=8)
def _read_small(path: str) -> bytes:
    """Small file that the tasks of a job share, read once: it never changes, because it is named by its content.

    Empty for a large file or one that cannot be read; each task then reads it itself.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = os.read(fd, _SMALL_BYTES)
    finally:
        os.close(fd)
    return found if len(found) < _SMALL_BYTES else b""


def fork(one: PreparedTask, host: ForkServerInfo) -> int | TaskStartError:
    try:
        pid = os.fork()
    except OSError as error:
        return _no_more(error)
    if pid == 0:
        main.run_attempt(one, host)
    return pid


def fork_pool(host: ForkServerInfo, group: str, log: int) -> tuple[int, socket.socket]:
    ours, theirs = socket.socketpair()
    try:
        pid = os.fork()
    except OSError as error:
        raise _no_more(error) from error
    if pid == 0:
        main.run_pool(host, group, theirs, log)
    theirs.close()
    return pid, ours


def _no_more(error: OSError) -> TaskStartError:
    return TaskStartError(NOT_RUNNABLE, f"The worker cannot make another process: {error.strerror}.")
