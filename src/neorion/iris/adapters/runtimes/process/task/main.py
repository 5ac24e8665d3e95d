"""Main function of a task's process, from the fork to its end. None of it runs in the fork server itself.

Every line copies the pages that it touches, at four microseconds each, so the plainest calls are used.
"""

# ruff: noqa: PTH102, PTH123 -- see `layout`: plain names, plain calls

import atexit
import errno
import logging
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from types import TracebackType
from typing import Any, NoReturn

import msgspec

from neorion.iris.adapters.runtimes.process import cgroups, environ, result_file, syscalls
from neorion.iris.adapters.runtimes.process.environ import NO_ROOM, NOT_RUNNABLE, Built, TaskStartError
from neorion.iris.adapters.runtimes.process.forkserver import at_fork
from neorion.iris.adapters.runtimes.process.layout import AttemptDir, RuntimeLayout
from neorion.iris.adapters.runtimes.process.protocol import StartRequest, frame, jobs
from neorion.keel.base import Error

_SIGCHLD = int(signal.SIGCHLD)
_FDS_MAX = os.sysconf("SC_OPEN_MAX")
_READ_BYTES = 1 << 16
_FULL = (errno.ENOSPC, errno.EDQUOT)
# Modules whose frames precede the user's code in a traceback.
_CALLERS = (__name__, "neorion.iris.model.map_task")


@dataclass(frozen=True, slots=True)
class ForkServerInfo:
    """Information for a child about its fork server."""

    pid: int
    files: RuntimeLayout
    groups: cgroups.CgroupManager | None


@dataclass(frozen=True, slots=True)
class PreparedTask:
    """Attempt prepared by the fork server. `begun` is the pipe that signals the start of the task, or -1."""

    job: StartRequest
    place: AttemptDir
    found: dict[str, str]
    variables: syscalls.EnvBlock
    # The pickled function, if it is small.
    function: bytes
    group: str
    log: int
    begun: int = -1
    # The fork server's end of `begun`.
    started: int = -1


def run_attempt(one: PreparedTask, host: ForkServerInfo) -> NoReturn:
    """Runs one attempt and ends the process."""
    code = NOT_RUNNABLE
    try:
        _detach_from_server(host, one.log, one.begun)
        code = _run_task(one, host)
    except TaskStartError as refusal:
        _refuse(one.place, refusal)
    except BaseException as error:  # noqa: BLE001 -- the process must end here in any case
        _print_error(error)
    finally:
        _flush()
        os._exit(code)


def run_pool(host: ForkServerInfo, group: str, channel: socket, log: int) -> NoReturn:
    """Runs attempts in turn. All of them share the directory, the modules and the remains of earlier ones."""
    try:
        _detach_from_server(host, log, channel.fileno())
        home = f"{host.files.pools}/{group}"
        os.mkdir(home)
        os.chdir(home)
        at_fork.install()
        codec = jobs()
        pool = _WarmTaskLoop(host, group, home, channel)
        while data := channel.recv(_READ_BYTES):
            for job in codec.feed(data):
                pool.run(job)
    except BaseException:  # noqa: BLE001 -- the process must end here in any case
        traceback.print_exc()
    finally:
        _run_exit_handlers()
        os._exit(NOT_RUNNABLE)


# Message of a pool's process before each task; exit codes are never negative.
RUNNING = -1


class _WarmTaskLoop:
    """Loop over the attempts of a pool's process, with their shared state."""

    def __init__(self, host: ForkServerInfo, group: str, home: str, channel: socket) -> None:
        self._host = host
        self._group = group
        self._home = home
        self._channel = channel
        self._load = _FunctionCache()
        self._built: Built | None = None
        self._ready = False

    def run(self, job: StartRequest) -> None:
        place = self._host.files.attempt(job.attempt)
        _redirect(place.log)
        if not self._ready:
            self._prepare(job, place)
        self._channel.sendall(frame([RUNNING]))
        os.environ.clear()
        os.environ.update(environ.variables(job, self._home, self._built))
        code = _call(job, place, lambda: self._load(job.function))
        _flush()
        self._channel.sendall(frame([code]))

    def _prepare(self, job: StartRequest, place: AttemptDir) -> None:
        try:
            _limit(job, self._host, self._group if job.limited else "")
            sys.path.insert(0, self._home)
            if job.prepares:
                self._built = _prepare(job, self._host, self._home)
        except (TaskStartError, OSError) as error:
            _refuse(
                place,
                error if isinstance(error, TaskStartError) else TaskStartError(NOT_RUNNABLE, str(error)),
            )
            os._exit(NOT_RUNNABLE)
        self._ready = True


def _detach_from_server(host: ForkServerInfo, log: int, keep: int) -> None:
    """Drops everything inherited from the fork server: its session, its signal handlers, its files."""
    syscalls.set_pdeathsig(host.pid)
    syscalls.set_child_subreaper()
    os.setsid()
    signal.set_wakeup_fd(-1)
    syscalls.reset_signal(_SIGCHLD)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, max(keep, 3))
    os.closerange(max(keep + 1, 3), _FDS_MAX)


def _run_task(one: PreparedTask, host: ForkServerInfo) -> int:
    job, place, found, variables = one.job, one.place, one.found, one.variables
    built: Built | None = None
    try:
        os.chdir(place.work)
        _limit(job, host, one.group)
        sys.path.insert(0, place.work)
        if one.begun >= 0:
            built = _prepare(job, host, place.work)
    except OSError as error:
        raise TaskStartError(NOT_RUNNABLE, f"The worker could not set it up: {error}.") from error
    if built is not None:
        found = environ.variables(job, place.work, built)
        variables = syscalls.EnvBlock(found)
    path = environ.program(job.argv, found) if job.argv else ""
    if one.begun >= 0:
        os.write(one.begun, b"!")
        os.close(one.begun)
    if path:
        _execute(path, job.argv, found)
    variables.put()
    at_fork.install()
    code = _call(job, place, lambda: _function(one))
    _run_exit_handlers()
    return code


def _function(one: PreparedTask) -> Any:  # noqa: ANN401 -- any object of the user
    return pickle.loads(one.function) if one.function else _unpickle(one.job.function)  # noqa: S301 -- the task's own function, in the task's own process


def _limit(job: StartRequest, host: ForkServerInfo, group: str) -> None:
    if group and host.groups is not None:
        host.groups.join(group)
    elif host.groups is None and job.limited:
        cgroups.join_limits(job.limits)


def _prepare(job: StartRequest, host: ForkServerInfo, work: str) -> Built | None:
    # Few tasks need zip files and subprocesses, and modules loaded earlier are copied at each fork.
    from neorion.iris.adapters.runtimes.process.task.setup import prepare  # noqa: PLC0415 -- loaded when needed

    try:
        return prepare(job, host.files, Path(work))
    except Error as error:
        raise TaskStartError(NOT_RUNNABLE, error.sentence) from error


def _execute(path: str, argv: list[str], found: dict[str, str]) -> NoReturn:
    # Python ignores these two signals; programs expect the kernel's defaults.
    syscalls.reset_signal(signal.SIGPIPE)
    syscalls.reset_signal(signal.SIGXFSZ)
    try:
        os.execve(path, argv, found)  # noqa: S606 -- runs the user's program
    except OSError as error:
        raise environ.unrunnable(argv, error) from error


class _FunctionCache:
    """Cache of a job's function for the next attempt. Its file never changes, because it is named by its content."""

    def __init__(self) -> None:
        self._path = ""
        self._function: Callable[..., object] = _FunctionCache

    def __call__(self, path: str) -> Callable[..., object]:
        if path != self._path:
            self._path, self._function = path, _unpickle(path)
        return self._function


def _unpickle(path: str) -> Any:  # noqa: ANN401 -- any object of the user
    fd = os.open(path, os.O_RDONLY)
    start = os.read(fd, _READ_BYTES)
    if len(start) < _READ_BYTES:
        os.close(fd)
        return pickle.loads(start)  # noqa: S301 -- the task's own data, in the task's own process
    os.lseek(fd, 0, os.SEEK_SET)
    # Unbuffered, because a pickle is read in large pieces.
    with open(fd, "rb", buffering=0) as file:
        return pickle.load(file)  # noqa: S301 -- the task's own data, in the task's own process


def _call(job: StartRequest, place: AttemptDir, load: Callable[[], Callable[..., object]]) -> int:
    began = syscalls.boottime_ns()
    value: object = None
    error: BaseException | None = None
    code = 0
    try:
        function = load()
        if job.input:
            args, kwargs = _unpickle(job.input)
            value = function(*args, **kwargs)
        else:
            value = function()
    except SystemExit as ending:
        code = _exit_code(ending)
        error = ending if code else None
    except BaseException as raised:  # noqa: BLE001 -- the caller gets every error
        raised.__traceback__ = _strip_runner_frames(raised.__traceback__)
        _print_error(raised)
        code, error = 1, raised
    flush = result_file.worth_flushing(began)
    try:
        if error is not None:
            result_file.write_error(place.result, error, flush=flush)
        elif not result_file.write_value(place.result, value, flush=flush):
            sys.stderr.write(result_file.read_head(Path(place.result)).text)
            return 1
    except OSError as failure:
        _print_error(failure)
        return NO_ROOM if failure.errno in _FULL else 1
    return code


def _print_error(error: BaseException) -> None:
    with suppress(OSError):
        # The disk of the log may be full, which the end of the task reports.
        traceback.print_exception(error)


def _strip_runner_frames(raised: TracebackType | None) -> TracebackType | None:
    """Removes the frames before the user's code. Without user code the traceback is unchanged."""
    found = raised
    while found is not None and found.tb_frame.f_globals.get("__name__") in _CALLERS:
        found = found.tb_next
    return found or raised


def _exit_code(ending: SystemExit) -> int:
    """Exit code of `sys.exit(...)`, by the rules of the interpreter."""
    match ending.code:
        case None:
            return 0
        case int(code):
            return code & 0xFF
        case message:
            sys.stderr.write(f"{message}\n")
            return 1


def _redirect(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.close(fd)


def _refuse(place: AttemptDir, refusal: TaskStartError) -> None:
    with suppress(OSError):
        sys.stderr.write(f"{refusal.sentence}\n")
    with suppress(OSError), open(place.refusal, "wb") as file:
        file.write(msgspec.msgpack.encode((refusal.code, refusal.sentence)))


def _run_exit_handlers() -> None:
    """Ends the interpreter without its full cost: joins threads, runs exit handlers, flushes output."""
    if threading.active_count() > 1:
        threading._shutdown()  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] -- as multiprocessing ends its processes
    # The first handler is that of `logging`, which matters only if the task has log handlers.
    if atexit._ncallbacks() > 1 or logging._handlerList:  # noqa: SLF001  # pyright: ignore -- there are no public names
        atexit._run_exitfuncs()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- as above
    _flush()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # A full disk or a stream that the task closed: the error cannot be reported.
            continue
