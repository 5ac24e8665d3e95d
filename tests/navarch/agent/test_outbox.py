"""Events on their way: kept until they were taken, bounded, and numbered so that a replay is harmless."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Instant
from neorion.navarch.agent.outbox import BATCH_MAX, STALE_MAX, WAITING_MAX, Outbox
from neorion.navarch.model import EventKind, HealthEvent

pytestmark = pytest.mark.anyio


def event(number: int) -> HealthEvent:
    return HealthEvent(Instant(number), EventKind.XID, gpu=1, xid=number % 100, message="ä\n€")


async def told(outbox: Outbox) -> list[int]:
    """Everything that waits, taken batch by batch."""
    found: list[int] = []
    while outbox:
        batch = await outbox.next_batch()
        assert len(batch.events) <= BATCH_MAX
        found += [one.at.ns for one in batch.events]
        outbox.taken(batch)
    return found


async def test_what_was_not_taken_is_there_in_the_next_life_in_its_order(tmp_path: Path):
    outbox = Outbox("one", tmp_path / "outbox")
    for number in range(1, 6):
        outbox.put(event(number))
    first = await outbox.next_batch()
    outbox.taken(first)
    outbox.put(event(6))
    outbox.put(event(7))
    later = Outbox("two", tmp_path / "outbox")
    later.put(event(8))
    batch = await later.next_batch()
    assert (batch.boot, batch.first, [one.at.ns for one in batch.events]) == ("one", 6, [6, 7])
    later.taken(batch)
    batch = await later.next_batch()
    assert (batch.boot, batch.first, batch.events) == ("two", 1, (event(8),))


async def test_a_batch_is_the_same_again_until_it_was_taken():
    outbox = Outbox("one")
    outbox.put(event(1))
    batch = await outbox.next_batch()
    outbox.put(event(2))
    again = await outbox.next_batch()
    assert (again.first, again.events[:1]) == (batch.first, batch.events)
    # The answer to the first came late: what came with the second was not taken with it.
    outbox.taken(batch)
    assert (await outbox.next_batch()).events == (event(2),)


async def test_too_many_events_cost_the_oldest_and_no_number_is_given_twice(tmp_path: Path):
    outbox = Outbox("one", tmp_path / "outbox")
    for number in range(1, WAITING_MAX + 11):
        outbox.put(event(number))
    assert len(outbox) == WAITING_MAX
    batch = await Outbox("two", tmp_path / "outbox").next_batch()
    assert (batch.first, batch.events[0]) == (11, event(11))


async def test_the_file_does_not_grow_with_what_was_told(tmp_path: Path):
    outbox = Outbox("one", tmp_path / "outbox")
    for number in range(1, 3 * STALE_MAX):
        outbox.put(event(number))
        outbox.taken(await outbox.next_batch())
    assert len((tmp_path / "outbox").read_bytes().splitlines()) <= STALE_MAX + 2


@given(cut=st.integers(0, 2_000), junk=st.binary(max_size=40))
async def test_a_torn_file_costs_no_more_than_what_was_torn_off(
    cut: int, junk: bytes, tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("outbox") / "outbox"
    outbox = Outbox("one", path)
    for number in range(1, 11):
        outbox.put(event(number))
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] + junk)
    left = await told(Outbox("two", path))
    kept = whole[:cut].count(b"\n")
    assert left[:kept] == list(range(1, kept + 1))
    # The next event is one of another life: no number of a line that may have been told is given again.
    fresh = Outbox("three", path)
    fresh.put(event(99))
    assert (await fresh.next_batch()).boot == "three"


async def test_a_disk_that_takes_nothing_costs_no_event(tmp_path: Path):
    outbox = Outbox("one", tmp_path / "no" / "such" / "folder")
    outbox.put(event(1))
    assert await told(outbox) == [1]
