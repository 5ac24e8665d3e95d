"""The fake cloud where no provider of another cloud is like it: agents that live on its machines."""

import asyncio

import anyio
import pytest

from neorion.capacity.fake import FakeCloud, FakeCloudOptions, FakeMachine
from neorion.capacity.provider import Intent, IntentId
from neorion.keel.base import Duration
from neorion.keel.clock import VirtualClock, seeded_rng

pytestmark = pytest.mark.anyio
INTENT = Intent(IntentId("buy-1"), "navarch-a", "gpu_8x_h100_sxm5", "us-west-2")


class SetBack(VirtualClock):
    """Somebody sets it back during the first sleep."""

    back_s = 0.01

    async def sleep(self, span: Duration) -> None:
        await super().sleep(span)
        self.jump(-self.back_s)
        self.back_s = 0.0


async def test_a_machine_is_inhabited_even_if_the_wall_clock_was_set_back_while_it_booted():
    clock = SetBack(asyncio.get_running_loop().time)
    cloud = FakeCloud(clock, seeded_rng(1), FakeCloudOptions(boot=Duration.of(ms=20)))
    inhabited: asyncio.Queue[FakeMachine] = asyncio.Queue()
    machine = cloud.make(INTENT)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cloud.run, inhabited.put)
        with anyio.fail_after(30):
            assert await inhabited.get() is machine
        tasks.cancel_scope.cancel()
