"""A process that writes to a store and says so: `python -m tests.keel.store.writer run|serve WHERE [ROUNDS]`.

Run does rounds of three writes at once. Serve does one write for each line it is sent. Each answer is one line, written by
one system call after the acknowledgement.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from neorion.keel.base import Duration, Error
from neorion.keel.clock import SystemClock
from neorion.keel.store import Store, open_store, sqlite
from tests.keel.store.schema import ALL, Pair

SHORT_LEASE = Duration.of(seconds=2)


class Writer:
    """Such a process, seen from outside."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._lines = BufferedByteReceiveStream(process.stdout)
        self.pid = process.pid
        self.kill = process.kill
        self.wait = process.wait
        self.signal = process.send_signal

    async def line(self) -> str:
        return (await self._lines.receive_until(b"\n", 200)).decode()

    async def send(self, key: str) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(f"{key}\n".encode())

    async def ask(self, key: str) -> str:
        await self.send(key)
        return await self.line()


@asynccontextmanager
async def writer(mode: str, where: Path | str, *arguments: str) -> AsyncGenerator[Writer]:
    """Starts one, and waits until its store is open; killed at the end."""
    command = [sys.executable, "-m", "tests.keel.store.writer", mode, str(where), *arguments]
    async with await anyio.open_process(command, stderr=None) as process:
        try:
            running = Writer(process)
            assert await running.line() == "open"
            yield running
        finally:
            if process.returncode is None:
                process.kill()


async def write(store: Store, key: str) -> None:
    try:
        answer = f"ack {await store.write(Pair(key))}"
    except Error as error:
        answer = f"error {error.code}"
    os.write(1, f"{answer}\n".encode())


async def run(store: Store, rounds: int) -> None:
    for n in range(rounds):
        await asyncio.gather(*(write(store, f"{store.epoch}-{n:03d}-{letter}") for letter in "abc"))


async def serve(store: Store) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        await write(store, line.strip())


async def main(mode: str, where: str, rounds: int = 0) -> None:
    async with open_store(where, migrations=ALL, clock=SystemClock(), lease=SHORT_LEASE) as store:
        os.write(1, b"open\n")
        await (serve(store) if mode == "serve" else run(store, rounds))


if __name__ == "__main__":
    # So that a short run comes through several checkpoints.
    sqlite.CHECKPOINT_PAGES = 8
    asyncio.run(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])))
