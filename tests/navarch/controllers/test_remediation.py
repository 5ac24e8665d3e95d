"""Reboots: those that a cloud carries out, and those that nobody can."""

import pytest

from neorion.capacity.fake import FakeProvider
from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import Capability
from neorion.navarch.model import NodeState, Repair, RepairStep
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, Running, running

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
        await fleet.effects.idle()
        for _ in range(3):
            await fleet.tick()
            assert not fleet.effects.busy
        (repair,) = fleet.context.state.open_repairs.values()
        assert repair.step is RepairStep.TREATING
        assert it.cloud.machines[node.machine].reboots == 1
        again = pb.RegisterRequest(node_id=node.machine, kernel_boot="two")
        agent = it.agent((await it.agent(JOIN).register(again)).token)
        await it.turn()
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        await it.turn()
        assert fleet.context.state.nodes[node.id].state is NodeState.ACTIVE


async def reach(it: Running, step: RepairStep) -> Repair:
    """Until a repair has come so far."""
    repairs = it.plane.fleet.context.state.repairs

    async def so() -> bool:
        return any(repair.step is step for repair in repairs.values())

    await it.until(so)
    return next(repair for repair in repairs.values() if repair.step is step)


class NoReboots(FakeProvider):
    """As CoreWeave is: machines are sold, and not rebooted."""

    capabilities = FakeProvider.capabilities - {Capability.REBOOT}


async def test_a_silent_machine_that_nobody_can_reboot_is_not_waited_for():
    async with running(spec(1), seller=NoReboots) as it:
        (node,) = await it.serving(1)
        fleet = it.plane.fleet
        await fleet.reports.silence(node.id, fleet.context.clock.now())
        await reach(it, RepairStep.WAITING)
        await it.operator.approve_repair(pb.NodeOrder(node=node.id))
        assert (await reach(it, RepairStep.FAILED)).remedy is Remedy.REBOOT
        story = await it.operator.history(pb.HistoryRequest(subject=node.id))
        (failed,) = [line.sentence for line in story.lines if line.event == "repair.failed"]
        assert "its cloud cannot, and its agent is not heard" in failed


async def test_an_agent_that_speaks_is_asked_for_the_reboot_that_its_cloud_cannot_do():
    async with running(spec(1), seller=NoReboots) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        await agent.report(pb.ReportRequest(boot="one", first=1, events=[ASKS_FOR_A_REBOOT]))
        await reach(it, RepairStep.TREATING)
        (order,) = (await agent.heartbeat(pb.HeartbeatRequest())).orders
        assert order.remedy == "reboot"
