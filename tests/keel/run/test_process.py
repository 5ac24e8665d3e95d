"""Whole processes with real signals: the end always comes, and in order."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

Start = Callable[[str], "subprocess.Popen[str]"]

PRELUDE = """
import anyio
from neorion.keel.base import Duration, Terminal
from neorion.keel.run import run_process
def say(word): print(word, flush=True)
"""


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a program made of a prelude and the given lines, and waits until it says ready."""
    running: list[subprocess.Popen[str]] = []

    def begin(lines: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(lines)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def finish(process: "subprocess.Popen[str]") -> tuple[str, str, int]:
    """What is left to read, and the exit code. Not `communicate`, which forgets what `readline` had buffered."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout.read(), process.stderr.read(), process.wait()


def test_the_first_signal_lets_work_come_to_its_end(start: Start):
    process = start("""
        async def main(crew):
            say("ready")
            await crew.stopping.wait()
            say("drained")
        run_process(main)
        say("after")
        """)
    process.send_signal(signal.SIGTERM)
    assert finish(process)[::2] == ("drained\nafter\n", 0)


def test_what_outstays_the_grace_is_cancelled_even_if_it_swallows_one_cancellation(start: Start):
    process = start("""
        async def main(crew):
            say("ready")
            try:
                await anyio.sleep_forever()
            except BaseException:
                say("swallowed")
            try:
                await anyio.sleep_forever()
            finally:
                say("cancelled again")
        run_process(main, grace=Duration.of(ms=1))
        """)
    process.send_signal(signal.SIGTERM)
    assert finish(process)[::2] == ("swallowed\ncancelled again\n", 0)


def test_the_second_signal_does_not_wait_for_the_grace(start: Start):
    process = start("""
        async def main(crew):
            say("ready")
            await crew.stopping.wait()
            say("stopping")
            await anyio.sleep_forever()
        run_process(main, grace=Duration.of(hours=1))
        """)
    assert process.stdout is not None
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    process.send_signal(signal.SIGINT)
    assert finish(process)[2] == 0


def test_a_process_that_hangs_shows_where_and_ends(start: Start):
    process = start("""
        import threading
        import neorion.keel.run.process as process_module
        process_module.HANG_S_MAX = 0.1
        async def main(crew):
            say("ready")
            await crew.stopping.wait()
            hang_for_ever = threading.Event()
            hang_for_ever.wait()
        run_process(main, grace=Duration.of(ms=1))
        """)
    process.send_signal(signal.SIGTERM)
    _, err, code = finish(process)
    assert code == 1
    assert "most recent call first" in err
    assert "in main" in err


def test_an_error_of_a_task_leaves_the_process_as_itself(start: Start):
    process = start("""
        async def fail():
            raise Terminal("ship.sunk", "The ship sank.")
        async def main(crew):
            say("ready")
            crew.spawn("ship", fail)
            await anyio.sleep_forever()
        try:
            run_process(main)
        except Terminal as error:
            say(error.code)
        """)
    assert finish(process)[::2] == ("ship.sunk\n", 0)
