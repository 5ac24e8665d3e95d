"""Blocks real resources during a simulation: sockets, processes, threads, sleep, clocks and randomness.

Audit events of the interpreter catch sockets and processes wherever they are used. The others raise no such event, so
the few functions behind them are replaced during a simulation. Logging may still read the time, because the time of
a log line affects nothing.
"""

import asyncio
import inspect
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from types import FrameType, ModuleType
from typing import Final, TypeVar, TypeVarTuple, Unpack

from anyio import CancelScope, CapacityLimiter, to_thread
from anyio.lowlevel import checkpoint

from neorion.keel.base import Terminal

Loop = TypeVar("Loop", bound=type)
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_EVENTS: Final = {
    "socket.__new__": "a real socket",
    "socket.getaddrinfo": "real name resolution",
    "socket.gethostbyname": "real name resolution",
    "subprocess.Popen": "a real process",
    "os.fork": "a real process",
    "os.posix_spawn": "a real process",
    "os.system": "a real process",
}
_LOOP_METHODS: Final = (
    "add_reader", "add_signal_handler", "add_writer", "connect_accepted_socket", "connect_read_pipe",
    "connect_write_pipe", "create_connection", "create_datagram_endpoint", "create_server", "create_unix_connection",
    "create_unix_server", "getaddrinfo", "getnameinfo", "remove_reader", "remove_signal_handler", "remove_writer",
    "sendfile", "sock_accept", "sock_connect", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into",
    "sock_sendall", "sock_sendfile", "sock_sendto", "start_tls", "subprocess_exec", "subprocess_shell",
)  # fmt: skip


class _Seal:
    """The thread that simulates now, if any. Other threads, such as a test runner's, are not affected."""

    thread: int | None = None
    installed = False


def refused(what: str) -> Terminal:
    return Terminal(
        "sim.real",
        f"Code under simulation used {what}.",
        hint="Take Clock, Rng, Ids, the network or the disk from outside; under simulation they come from the World.",
    )


def sandboxed(loop: Loop) -> Loop:
    """Makes every method of a loop that would use real resources raise an error."""

    def refusing(name: str) -> Callable[..., object]:
        def method(*_args: object, **_options: object) -> object:
            raise refused(f"loop.{name}")

        return method

    for name in _LOOP_METHODS:
        setattr(loop, name, refusing(name))
    return loop


@contextmanager
def is_sandboxed() -> Generator[None]:
    """Blocks real resources in this thread."""
    if not _Seal.installed:
        _Seal.installed = True
        sys.addaudithook(_audit)  # stays for the life of the process, and is idle outside of simulations
    _Seal.thread = threading.get_ident()
    try:
        for home, name, _, stand_in in _REPLACED:
            setattr(home, name, stand_in)
        yield
    finally:
        _Seal.thread = None
        for home, name, original, _ in _REPLACED:
            setattr(home, name, original)


def _audit(event: str, _args: tuple[object, ...]) -> None:
    if _Seal.thread is not None and event in _EVENTS and threading.get_ident() == _Seal.thread:
        raise refused(_EVENTS[event])


def _guarded(home: ModuleType | type, name: str) -> tuple[ModuleType | type, str, object, object]:
    original: Callable[..., object] = getattr(home, name)

    def guard(*args: object) -> object:
        if threading.get_ident() == _Seal.thread and not _logging_asks(inspect.currentframe()):
            raise refused(f"{home.__name__}.{name}")
        return original(*args)

    return home, name, original, guard


def _logging_asks(guard: FrameType | None) -> bool:
    caller = guard and guard.f_back
    return caller is not None and caller.f_globals.get("__name__") == "logging"


async def _run_sync(
    func: Callable[[Unpack[Ts]], T],
    *args: *Ts,
    abandon_on_cancel: bool = False,
    limiter: CapacityLimiter | None = None,
) -> T:
    """`anyio.to_thread.run_sync` without the thread: the loop runs the function at a later step."""
    await checkpoint()
    async with limiter or to_thread.current_default_thread_limiter():
        work = partial(copy_context().run, func, *args)
        future = asyncio.get_running_loop().run_in_executor(None, work)
        with CancelScope(shield=not abandon_on_cancel):
            await future
        return future.result()


_REPLACED: Final = (
    *(_guarded(time, name) for name in ("time", "time_ns", "monotonic", "monotonic_ns", "sleep")),
    _guarded(threading.Thread, "start"),
    _guarded(os, "urandom"),
    (to_thread, "run_sync", to_thread.run_sync, _run_sync),
)
