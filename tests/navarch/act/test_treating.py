"""Reboots that a cloud carries out."""

import pytest

from neorion.navarch.model import NodeState, RepairStep
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, running

pytestmark = pytest.mark.anyio
ASKS_FOR_A_REBOOT = pb.HealthEvent(kind="recovery_action", gpu=0, metrics={"action": 2.0})


async def test_nothing_turns_while_a_machine_is_rebooted_by_its_cloud():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        fleet = it.plane.fleet
        request = pb.RegisterRequest(node_id=node.machine, kernel_boot="one")
        agent = it.agent((await it.agent(JOIN).register(request)).token)
        await agent.report(pb.ReportRequest(boot="one", first=1, events=[ASKS_FOR_A_REBOOT]))

        async def asked() -> bool:
            return it.cloud.machines[node.machine].reboots == 1

        await it.until(asked)
        await fleet.errands.idle()
        for _ in range(3):
            await fleet.tick()
            assert not fleet.errands.busy
        (repair,) = fleet.deck.book.open_repairs.values()
        assert repair.step is RepairStep.TREATING
        assert it.cloud.machines[node.machine].reboots == 1
        again = pb.RegisterRequest(node_id=node.machine, kernel_boot="two")
        agent = it.agent((await it.agent(JOIN).register(again)).token)
        await it.turn()
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        await it.turn()
        assert fleet.deck.book.nodes[node.id].state is NodeState.ACTIVE
