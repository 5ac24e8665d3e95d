"""What a person says counts: whoever is told that a node is held finds it there afterwards."""

from dataclasses import replace

import anyio
import pytest

from neorion.keel.base import Conflict, Duration
from neorion.navarch.adapters.null import NoScheduler
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.model import Health, Node, NodeState
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import HealthRules, Scaling
from neorion.navarch.ports import DrainProgress
from neorion.navarch.testing import spec
from tests.navarch.plane import Running, running

pytestmark = pytest.mark.anyio
ASKER = Requester("a person")
XID_79 = pb.ReportRequest(boot="b", first=1, events=[pb.HealthEvent(kind="xid", xid=79, gpu=0)])


class Busy(NoScheduler):
    """Work takes its time to leave."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.go = anyio.Event()

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        del node, why, left
        self.asked.set()
        await self.go.wait()
        return DrainProgress(done=True)


def busy(it: Running) -> Busy:
    context, scheduler = it.plane.fleet.context, Busy()
    context.backends = replace(context.backends, scheduler=scheduler)
    return scheduler


async def drained_for_its_successor(it: Running, scheduler: Busy) -> Node:
    (node,) = await it.serving(1)
    await it.plane.orders.replace(node.id, ASKER)

    async def ordered() -> bool:
        return it.nodes(NodeState.BOOTING) != []

    await it.until(ordered)
    (successor,) = it.nodes(NodeState.BOOTING)
    agent = it.agent((await it.register(successor)).token)
    await agent.heartbeat(pb.HeartbeatRequest(tested=True))
    with anyio.fail_after(60):
        await scheduler.asked.wait()
    return it.plane.fleet.context.state.nodes[node.id]


async def machines(it: Running) -> set[str]:
    return {one.id for one in await it.provider.list(it.plane.fleet.context.installation.id)}


@pytest.mark.parametrize("verb", ["cordon", "veto"])
async def test_a_node_that_makes_room_for_its_successor_stays_when_a_person_says_so(verb: str):
    async with running(spec(1)) as it:
        scheduler = busy(it)
        node = await drained_for_its_successor(it, scheduler)
        assert node.state is NodeState.DRAINING
        await getattr(it.plane.orders, verb)(node.id, ASKER)
        scheduler.go.set()
        await it.turn()
        kept = it.plane.fleet.context.state.nodes[node.id]
        assert (kept.state, kept.held) == (NodeState.CORDONED, True)
        assert it.plane.fleet.context.state.open_repairs == {}
        assert node.machine in await machines(it)


async def test_a_person_who_drains_a_node_that_makes_room_keeps_it_empty():
    async with running(spec(1)) as it:
        scheduler = busy(it)
        node = await drained_for_its_successor(it, scheduler)
        asked = await it.plane.orders.drain(node.id, ASKER)
        assert (asked.state, asked.since) == (NodeState.DRAINING, node.since)
        scheduler.go.set()
        await it.turn()
        kept = it.plane.fleet.context.state.nodes[node.id]
        assert (kept.state, kept.held) == (NodeState.DRAINED, True)
        assert node.machine in await machines(it)


async def test_a_veto_does_not_call_off_what_a_person_drains():
    async with running(spec(1, health=HealthRules(auto_replace=False))) as it:
        scheduler = busy(it)
        (node,) = await it.serving(1)
        await it.agent((await it.register(node)).token).report(XID_79)
        await it.turn()
        await it.plane.orders.drain(node.id, ASKER)
        with anyio.fail_after(60):
            await scheduler.asked.wait()
        await it.plane.orders.veto(node.id, ASKER)
        scheduler.go.set()
        await it.turn()
        assert it.plane.fleet.context.state.nodes[node.id].state is NodeState.DRAINED


async def test_a_node_that_the_pool_gives_back_stays_when_a_person_says_so():
    async with running(spec(1, scaling=Scaling(1, 2))) as it:
        scheduler = busy(it)
        await it.plane.orders.scale("training", 2, ASKER)
        await it.serving(2)
        await it.plane.orders.scale("training", 1, ASKER)
        with anyio.fail_after(60):
            await scheduler.asked.wait()
        (leaving,) = it.nodes(NodeState.DRAINING)
        await it.plane.orders.cordon(leaving.id, ASKER)
        scheduler.go.set()
        await it.turn()
        kept = it.plane.fleet.context.state.nodes[leaving.id]
        assert (kept.state, kept.held, kept.retiring) == (NodeState.CORDONED, True, False)
        assert leaving.machine in await machines(it)


async def test_a_replacement_that_waits_for_its_turn_is_called_off_by_a_cordon():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        await it.plane.orders.pause("training", ASKER)
        await it.plane.orders.replace(node.id, ASKER)
        await it.plane.orders.cordon(node.id, ASKER)
        await it.plane.orders.resume("training", ASKER)
        await it.turn()
        assert it.plane.fleet.context.state.open_repairs == {}
        assert it.plane.fleet.context.state.nodes[node.id].state is NodeState.CORDONED


async def test_a_person_is_told_when_it_is_too_late():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        fault = pb.HealthEvent(kind="xid", xid=95, gpu=3)
        await agent.report(pb.ReportRequest(boot="b", first=1, events=[fault]))

        async def treated() -> bool:
            return it.plane.fleet.remediator.order(node.id) is not None

        await it.until(treated)
        with pytest.raises(Conflict) as refused:
            await it.plane.orders.cordon(node.id, ASKER)
        assert refused.value.code == "navarch.too_late"
        assert not it.plane.fleet.context.state.nodes[node.id].held


async def test_a_veto_before_the_repair_began_is_ended_by_an_uncordon():
    async with running(spec(1, health=HealthRules(auto_replace=False))) as it:
        (node,) = await it.serving(1)
        await it.agent((await it.register(node)).token).report(XID_79)
        await it.turn()
        await it.plane.orders.veto(node.id, ASKER)
        await it.turn()
        told = (await it.operator.explain(pb.ExplainRequest(subject=node.id))).sentences
        assert any(f"navarch node uncordon {node.id}" in sentence for sentence in told)
        await it.plane.orders.uncordon(node.id, ASKER)
        await it.turn()
        free = it.plane.fleet.context.state.nodes[node.id]
        assert (free.state, free.held, free.health) == (NodeState.ACTIVE, False, Health.HEALTHY)
        assert it.plane.fleet.context.state.open_repairs == {}
