import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable

import anyio
import pytest

from neorion.keel.base import Terminal
from neorion.keel.clock import SystemClock
from neorion.keel.sim import World, simulate


def connect() -> None:
    with socket.socket():
        pass


def resolve() -> None:
    socket.getaddrinfo("localhost", 80)


REAL: dict[str, Callable[[], object]] = {
    "a real socket": connect,
    "Thread.start": lambda: threading.Thread(target=int).start(),
    "time.sleep": lambda: time.sleep(0),  # noqa: TID251 -- must be refused
    "a real process": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    "real name resolution": resolve,
    "time.time": lambda: time.time(),  # noqa: TID251, PLW0108 -- must be refused
    "time.monotonic": lambda: time.monotonic(),  # noqa: TID251, PLW0108 -- must be refused
    "os.urandom": lambda: uuid.uuid4(),  # noqa: TID251, PLW0108 -- must be refused
}


@pytest.mark.parametrize("what", REAL)
def test_the_real_world_is_refused_by_name(what: str):
    async def scenario(_world: World) -> None:
        REAL[what]()

    error = simulate(scenario, 1).error
    assert isinstance(error, Terminal)
    assert error.code == "sim.real"
    assert what in error.sentence
    assert "World" in error.hint


def test_the_loop_refuses_real_connections_and_signals():
    async def scenario(world: World) -> None:
        for attempt in (
            lambda: asyncio.open_connection("localhost", 80),
            lambda: anyio.connect_tcp("localhost", 80),
            lambda: asyncio.create_subprocess_exec("true"),
        ):
            with pytest.raises(Terminal, match="loop"):
                await attempt()
        with pytest.raises(Terminal, match="add_signal_handler"):
            world.loop.add_signal_handler(15, int)
        with pytest.raises(Terminal, match="add_reader"):
            world.loop.add_reader(0, int)

    simulate(scenario, 1).check()


def test_the_system_clock_is_refused():
    async def scenario(_world: World) -> None:
        SystemClock().now()

    assert "time.time_ns" in str(simulate(scenario, 1).error)


def test_logging_may_know_the_time(caplog: pytest.LogCaptureFixture):
    async def scenario(_world: World) -> None:
        logging.getLogger("any").warning("said")

    simulate(scenario, 1).check()
    assert caplog.messages == ["said"]


def test_the_real_world_is_back_after_the_run_even_after_a_failure():
    async def scenario(_world: World) -> None:
        raise ValueError

    assert not simulate(scenario, 1).ok
    for use in REAL.values():
        use()


def test_other_threads_are_left_alone():
    before = os.urandom
    go, done = threading.Event(), threading.Event()
    seen = list[float]()

    def other() -> None:
        go.wait(10)
        seen.append(time.time())  # noqa: TID251 -- another thread may
        connect()
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    async def scenario(_world: World) -> None:
        go.set()
        done.wait(10)

    simulate(scenario, 1).check()
    thread.join()
    assert seen
    assert os.urandom is before
