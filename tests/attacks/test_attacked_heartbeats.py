"""Heartbeats of many agents while strangers attack the control plane: none is refused, and none takes much longer.

`python -m bench iris.attacked navarch.attacked` does the same with 1,000 workers and 10,000 agents.
"""

import asyncio
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from neorion.keel.clock import SystemClock
from tests.navarch.test_reconnect import ROOT, files, heartbeat, life

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

__all__ = ["files"]
CLOCK = SystemClock()
BEATING = 100
ROUNDS = 40
# On a busy machine a heartbeat may wait this long for the processor, attack or not.
NOISE_S = 0.2


@contextmanager
def strangers(port: int) -> Generator[None]:
    """Half-open streams, bodies that never come, and idle connections, 1,502 connections in all."""
    command = [sys.executable, "-m", "bench.strangers", f"http://127.0.0.1:{port}"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "1502 connections\n"
            yield
        finally:
            process.terminate()


async def took(port: int, tokens: list[str]) -> list[float]:
    """The times of heartbeats on connections that stand; one that is refused is an error."""
    times: list[float] = []

    async def agent(token: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for _ in range(ROUNDS):
                sent = CLOCK.monotonic()
                writer.write(heartbeat(token))
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200"), head
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
                times.append(CLOCK.monotonic() - sent)
        finally:
            writer.close()
            await writer.wait_closed()

    async with asyncio.TaskGroup() as group:
        for token in tokens:
            group.create_task(agent(token))
    return times


def p99_s(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


@pytest.mark.attack("held-requests", "idle-connections")
@pytest.mark.fault(23)
async def test_heartbeats_are_taken_while_strangers_attack(tmp_path: Path, files: None) -> None:
    del files
    with life(tmp_path) as plane:
        tokens = plane.tokens[:BEATING]
        await took(plane.port, tokens)
        quiet = await took(plane.port, tokens)
        with strangers(plane.port):
            beaten = await took(plane.port, tokens)
    assert len(beaten) == BEATING * ROUNDS
    assert p99_s(beaten) <= 3 * max(p99_s(quiet), NOISE_S)
