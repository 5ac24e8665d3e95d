"""A process that writes to a store and says so: `python -m tests.keel.store.writer run|serve WHERE [ROUNDS]`.

Run does rounds of three writes at once. Serve does one write for each line it is sent. Each answer is one line, written by
one system call after the acknowledgement.
"""

import asyncio
import os
import sys

from neorion.keel.base import Duration, Error
from neorion.keel.clock import SystemClock
from neorion.keel.store import Store, open_store, sqlite
from tests.keel.store.schema import ALL, Pair

SHORT_LEASE = Duration.of(seconds=2)


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
