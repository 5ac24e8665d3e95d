import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Instant
from neorion.keel.clock import EPOCH, VirtualClock
from neorion.keel.store import EventLog, EventRecord, InlineExecutor, MemoryDisk, Tx, open_store
from tests.keel.store.schema import ALL


def everything(tx: Tx) -> list[tuple[str, int]]:
    return [(subject, seq) for subject, seq in tx.execute("SELECT subject, seq FROM event ORDER BY seq")]


@given(
    st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), max_size=40),
    st.integers(min_value=1, max_value=20),
    st.integers(min_value=1, max_value=60),
)
def test_a_history_keeps_the_newest_and_never_exceeds_its_caps(
    batches: list[list[str]], per_subject: int, total: int
):
    history = EventLog("event", per_subject=per_subject, total=total)

    async def run() -> None:
        clock = VirtualClock(lambda: 0.0)
        async with open_store(MemoryDisk(), migrations=ALL, clock=clock, lane=InlineExecutor()) as store:
            appended = list[tuple[str, int]]()
            for batch in batches:
                lines = [(subject, EPOCH, "x") for subject in batch]
                events = await store.write(lambda tx, lines=lines: history.extend(tx, lines))
                appended += [(event.subject, event.seq) for event in events]
                rows = await store.read(everything)
                assert len(rows) <= total, "the total cap holds after every append"
                for who in "abcd":
                    mine = [row for row in rows if row[0] == who]
                    assert len(mine) <= per_subject, "the cap of each subject holds after every append"
                    assert mine == [row for row in appended if row[0] == who][len(mine) * -1 :] or not mine, (
                        "what is kept of a subject is its newest"
                    )
                assert rows[-1] == appended[-1], "the newest event is always there"

    asyncio.run(run())


@pytest.mark.anyio
async def test_recent_events_come_newest_first():
    history = EventLog("event", per_subject=3, total=100)
    clock = VirtualClock(lambda: 0.0)
    async with open_store(MemoryDisk(), migrations=ALL, clock=clock, lane=InlineExecutor()) as store:

        def change(tx: Tx) -> list[EventRecord]:
            for n in range(5):
                history.append(tx, "job", Instant(n), str(n))
                history.append(tx, "other", Instant(n), str(n))
            return history.recent(tx, "job", 2)

        assert [(event.body, event.at.ns, event.nth) for event in await store.write(change)] == [
            ("4", 4, 5),
            ("3", 3, 4),
        ]
