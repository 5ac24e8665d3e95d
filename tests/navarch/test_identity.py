"""Whose word counts: tokens that end, machines that stay themselves, events that count once over the ends of both sides."""

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from neorion.keel.base import Denied, Duration, Instant, Retry, Unauthenticated
from neorion.keel.clock import SystemClock
from neorion.keel.store import MemoryDisk
from neorion.navarch.model import Node, NodeId, NodeState, Repair, RepairStep
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import Scaling
from neorion.navarch.serve.authentication import TOKEN_LIFE, NodeTokenAuthenticator, SharedTokens
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, OPERATOR, Running, running

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class Wall(SystemClock):
    """A clock that somebody sets."""

    time: Instant

    def now(self) -> Instant:
        return self.time


async def test_a_nodes_token_ends():
    clock = Wall(Instant(10**18))
    keys = NodeTokenAuthenticator("secret", clock, SharedTokens(OPERATOR))
    token = keys.token_of(NodeId("node-a"))
    clock.time += TOKEN_LIFE - Duration.of(seconds=2)
    assert await keys.authenticate(token) is not None
    clock.time += Duration.of(seconds=2)
    assert await keys.authenticate(token) is None
    longer = token.replace(token.split(".")[2], "9" * 10)
    assert await keys.authenticate(longer) is None


async def test_a_token_is_renewed_by_a_heartbeat_and_by_nobody_else():
    async with running(spec(1)) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        assert (await agent.heartbeat(pb.HeartbeatRequest())).token == ""
        answer = await agent.heartbeat(pb.HeartbeatRequest(renew=True))
        assert answer.token_life_ms == TOKEN_LIFE.ms
        await it.agent(answer.token).heartbeat(pb.HeartbeatRequest())
        with pytest.raises(Unauthenticated):
            await it.agent("nv1.made.1.up").heartbeat(pb.HeartbeatRequest(renew=True))
        with pytest.raises(Denied):
            await it.agent(JOIN).heartbeat(pb.HeartbeatRequest(renew=True))


async def register(it: Running, node: Node, secret: str, token: str = JOIN, boot: str = ""):
    request = pb.RegisterRequest(node_id=node.machine, secret=secret, kernel_boot=boot)
    return await it.agent(token).register(request)


async def test_who_knows_the_token_for_joining_cannot_take_the_place_of_a_machine_that_lives():
    async with running(spec(1)) as it:
        await it.turn()
        (node,) = it.nodes()
        mine = await register(it, node, "mine")
        for secret in ("another", ""):
            with pytest.raises(Retry) as refused:
                await register(it, node, secret)
            assert refused.value.code == "navarch.not_the_same"
            assert refused.value.after is not None
            assert refused.value.after <= Duration.of(seconds=60)
        await register(it, node, "mine")
        # With its own token it may come with another secret: then it is that one from now on.
        await register(it, node, "new", mine.token)
        with pytest.raises(Retry):
            await register(it, node, "mine")


async def test_a_machine_that_lost_its_papers_joins_again_when_it_was_quiet_for_long_enough():
    async with running(spec(1)) as it:
        await it.turn()
        (node,) = it.nodes()
        await register(it, node, "mine")
        state = it.plane.fleet.context.state
        heartbeat = state.heartbeats[node.id]
        assert heartbeat.heard is not None
        state.heartbeats[node.id] = replace(heartbeat, heard=heartbeat.heard - Duration.of(seconds=61))
        await register(it, node, "another")
        story = await it.operator.history(pb.HistoryRequest(subject=node.id))
        assert [line.event for line in story.lines].count("node.rejoined") == 1


async def test_an_event_that_was_taken_before_the_control_plane_died_is_not_counted_again():
    disk = MemoryDisk()
    events = [pb.HealthEvent(kind="xid", xid=74, gpu=gpu) for gpu in range(3)]
    async with running(spec(1), disk=disk) as it:
        (node,) = await it.serving(1)
        agent = it.agent((await it.register(node)).token)
        await agent.report(pb.ReportRequest(boot="one", first=1, events=events[:2]))
        cloud = it.cloud
    async with running(spec(1), disk=disk, cloud=cloud) as it:
        agent = it.agent((await it.register(node)).token)
        # The answer was lost; the agent died, and one more was seen meanwhile.
        await agent.report(pb.ReportRequest(boot="one", first=1, events=events))
        seen = it.plane.fleet.context.state.events[node.id]
        assert [event.gpu for event in seen] == [0, 1, 2]
        await agent.report(pb.ReportRequest(boot="two", first=1, events=events[:1]))
        assert len(seen) == 4


async def reach(it: Running, step: RepairStep) -> Repair:
    """Until the one repair there is has come so far."""
    repairs = it.plane.fleet.context.state.repairs

    async def so() -> bool:
        return any(repair.step is step for repair in repairs.values())

    await it.until(so)
    return next(iter(repairs.values()))


async def recover(it: Running, token: str) -> Repair:
    """Until the one repair there is has come to a good end; the machine's agent speaks meanwhile, as agents do."""
    repairs, agent = it.plane.fleet.context.state.repairs, it.agent(token)

    async def so() -> bool:
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        return any(repair.step is RepairStep.DONE for repair in repairs.values())

    await it.until(so)
    return next(iter(repairs.values()))


async def treating(it: Running) -> tuple[Node, str]:
    """A node of which a GPU is to be reset, and the token of its agent."""
    (node,) = await it.serving(1)
    token = (await register(it, node, "mine")).token
    event = pb.HealthEvent(kind="xid", xid=95, gpu=3)
    await it.agent(token).report(pb.ReportRequest(boot="one", first=1, events=[event]))
    await reach(it, RepairStep.TREATING)
    return node, token


async def test_an_order_that_is_refused_ends_the_repair_with_the_reason():
    async with running(spec(1)) as it:
        node, token = await treating(it)
        answer = await it.agent(token).heartbeat(pb.HeartbeatRequest())
        (order,) = answer.orders
        assert (order.remedy, order.gpu) == ("reset_gpu", 3)
        refusal = pb.Refusal(id=order.id, code="agent.not_allowed", sentence="This agent may not.")
        answer = await it.agent(token).heartbeat(pb.HeartbeatRequest(refused=[refusal]))
        assert answer.orders == []
        await reach(it, RepairStep.FAILED)
        story = await it.operator.history(pb.HistoryRequest(subject=node.id))
        (failed,) = [line for line in story.lines if line.event == "repair.failed"]
        assert "This agent may not." in failed.sentence


async def test_an_order_that_was_carried_out_is_followed_by_a_check():
    async with running(spec(1)) as it:
        node, token = await treating(it)
        (order,) = (await it.agent(token).heartbeat(pb.HeartbeatRequest())).orders
        await it.agent(token).heartbeat(pb.HeartbeatRequest(done=["another", order.id]))
        repair = await recover(it, token)
        assert "verifying" in repair.times
        assert it.plane.fleet.context.state.nodes[node.id].state is NodeState.ACTIVE


async def test_a_reboot_is_over_when_the_machine_comes_back_with_another_kernel():
    async with running(spec(0, adopt=True, scaling=Scaling(0, 5))) as it:

        async def join(boot: str) -> str:
            request = pb.RegisterRequest(node_id="theirs", pool="training", kernel_boot=boot, secret="mine")
            return (await it.agent(JOIN).register(request)).token

        agent = it.agent(await join("one"))
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        await it.turn()
        asks = pb.HealthEvent(kind="recovery_action", gpu=0, metrics={"action": 2.0})
        await agent.report(pb.ReportRequest(boot="one", first=1, events=[asks]))
        repair = await reach(it, RepairStep.TREATING)
        (order,) = (await agent.heartbeat(pb.HeartbeatRequest())).orders
        assert order.remedy == "reboot"
        await join("one")
        await it.turn()
        assert it.plane.fleet.context.state.repairs[repair.id].step is RepairStep.TREATING
        await recover(it, await join("two"))


async def test_a_machine_that_its_cloud_reboots_serves_again_when_it_is_back_and_not_before():
    async with running(spec(1)) as it:
        await it.turn()
        (node,) = it.nodes()
        agent = it.agent((await register(it, node, "mine", boot="one")).token)
        await agent.heartbeat(pb.HeartbeatRequest(tested=True))
        await it.turn()
        asks = pb.HealthEvent(kind="recovery_action", gpu=0, metrics={"action": 2.0})
        await agent.report(pb.ReportRequest(boot="one", first=1, events=[asks]))
        repair = await reach(it, RepairStep.TREATING)
        for _ in range(3):
            # What it says before it goes down is no sign that it is back.
            await agent.heartbeat(pb.HeartbeatRequest(tested=True))
            await it.turn()
        (machine,) = it.cloud.machines.values()
        assert machine.reboots == 1
        assert it.plane.fleet.context.state.repairs[repair.id].step is RepairStep.TREATING
        await recover(it, (await register(it, node, "mine", boot="two")).token)
