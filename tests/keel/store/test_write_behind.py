"""Changes that gather in memory, under virtual time and in every order that chance can make of it."""

import logging
from dataclasses import dataclass, field

import anyio
import pytest

from neorion.keel.base import Retry
from neorion.keel.run import Supervisor
from neorion.keel.sim import World, seeds
from neorion.keel.store import InlineExecutor, MemoryDisk, Store, Tx, WriteBehind, open_store
from tests.keel.store.schema import ALL


@dataclass(slots=True)
class Lines:
    """Notes by number; as many writes are refused as there are refusals, as a busy store does."""

    refusals: list[Retry]
    bodies: dict[int, str] = field(default_factory=dict[int, str])

    def write(self, tx: Tx) -> None:
        if self.refusals:
            raise self.refusals.pop()
        tx.many("INSERT INTO note (id, body) VALUES (?, ?)", list(self.bodies.items()))


class Notes(WriteBehind[Lines]):
    def __init__(self, store: Store, world: World, refusals: int) -> None:
        busy = [Retry("store.busy", "The store is busy.") for _ in range(refusals)]
        super().__init__(store, world.clock, world.rng, lambda: Lines(busy))
        self.commits = 0

    def note(self, number: int, body: str) -> None:
        self._batch.bodies[number] = body
        self._changed()

    async def _commit(self, batch: Lines) -> None:
        self.commits += 1
        await super()._commit(batch)


def written(tx: Tx) -> list[tuple[int, str]]:
    return [
        (number, body) for number, body in tx.execute("SELECT id, body FROM note WHERE id > 0 ORDER BY id")
    ]


@seeds(20)
async def test_what_is_durable_is_in_the_store_and_what_gathered_went_together(world: World):
    disk, lane = MemoryDisk(), InlineExecutor()
    async with open_store(disk, migrations=ALL, clock=world.clock, lane=lane) as store:
        notes = Notes(store, world, refusals=world.rng.choice([0, 1, 3]))
        notes.note(1, "first")
        notes.note(1, "first, again")
        notes.note(2, "second")

        async def reader() -> None:
            await notes.wait_durable()
            assert await store.read(written) == [(1, "first, again"), (2, "second")]

        async with Supervisor() as crew:
            async with anyio.create_task_group() as readers:
                readers.start_soon(reader)
                readers.start_soon(reader)
                await world.sleep(1)
                assert await store.read(written) == [], "memory is ahead of the store until somebody writes"
                crew.spawn("writer", notes.run)
            assert notes.commits == 1
            notes.note(3, "third")
            await notes.wait_durable()
            assert (3, "third") in await store.read(written)
            await notes.wait_durable()
            await world.sleep(10)
            assert notes.commits == 2, "nothing is written while nothing changes"
            crew.cancel()


@seeds(1)
async def test_a_store_that_takes_nothing_is_told_once_and_so_is_its_return(
    world: World, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    caplog.clear()
    disk, lane = MemoryDisk(), InlineExecutor()
    async with open_store(disk, migrations=ALL, clock=world.clock, lane=lane) as store:
        notes = Notes(store, world, refusals=5)
        async with Supervisor() as crew:
            crew.spawn("writer", notes.run)
            for number in range(1, 4):
                notes.note(number, "line")
                await notes.wait_durable()
            crew.cancel()
    told = [record.message for record in caplog.records if "the store takes" in record.message]
    assert told == ["the store takes no changes", "the store takes changes again"]
