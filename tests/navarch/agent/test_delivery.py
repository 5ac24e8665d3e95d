"""A law: what was seen is counted once, whatever of both sides dies, and whenever."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Instant
from neorion.keel.store import MemoryDisk
from neorion.navarch.agent import messages
from neorion.navarch.agent.outbox import Outbox
from neorion.navarch.model import EventKind, HealthEvent
from neorion.navarch.testing import spec
from tests.navarch.plane import Running, running

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

# Each a moment in the life of an agent and its control plane.
STEP = st.sampled_from(["see", "see", "told", "answer lost", "agent killed", "server killed"])


class World:
    """One agent's outbox and one control plane, each of which may die at any step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "outbox"
        self.lives = 0
        self.seen = 0
        self.outbox = self.agent()

    def agent(self) -> Outbox:
        self.lives += 1
        return Outbox(f"life-{self.lives}", self.path)

    async def tell(self, it: Running, token: str, *, answered: bool) -> None:
        if not self.outbox:
            return
        batch = await self.outbox.next_batch()
        await it.agent(token).report(messages.report(batch, Instant(0)))
        if answered:
            self.outbox.taken(batch)

    async def live(self, it: Running, token: str, step: str) -> None:
        match step:
            case "see":
                self.seen += 1
                self.outbox.put(HealthEvent(Instant(0), EventKind.XID, xid=31, message=str(self.seen)))
            case "told" | "answer lost":
                await self.tell(it, token, answered=step == "told")
            case _:
                self.outbox = self.agent()


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(STEP, min_size=4, max_size=20))
async def test_every_event_is_counted_once_in_its_order(
    steps: Sequence[str], tmp_path_factory: pytest.TempPathFactory
):
    world, disk, cloud = World(tmp_path_factory.mktemp("agent")), MemoryDisk(), None
    lives = "\n".join([*steps, "server killed"]).split("server killed")
    for number, life in enumerate(lives):
        async with running(spec(1), disk=disk, cloud=cloud) as it:
            cloud = it.cloud
            if number == 0:
                await it.serving(1)
            (node,) = it.nodes()
            token = (await it.register(node)).token
            for step in life.split("\n"):
                if step:
                    await world.live(it, token, step)
            if number == len(lives) - 1:
                while world.outbox:
                    await world.tell(it, token, answered=True)
                counted = [int(one.message) for one in it.plane.fleet.context.state.events.get(node.id, ())]
                assert counted == list(range(1, world.seen + 1))
