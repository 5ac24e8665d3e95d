"""Machines that somebody else bought: what becomes of them when they are replaced, and come back."""

import pytest

from neorion.keel.base import Denied, NotFound
from neorion.keel.store import MemoryDisk
from neorion.navarch.model import NodeState
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.spec import Scaling
from neorion.navarch.testing import spec
from tests.navarch.plane import JOIN, Running, running

pytestmark = pytest.mark.anyio

ADOPTS = spec(0, adopt=True, scaling=Scaling(0, 5))
XID_79 = pb.ReportRequest(boot="b", first=1, events=[pb.HealthEvent(kind="xid", xid=79, gpu=0)])


async def join(it: Running, gpus: int = 8) -> pb.RegisterResponse:
    found = [pb.Gpu(index=index) for index in range(gpus)]
    request = pb.RegisterRequest(node_id="theirs", pool="training", gpus=found)
    return await it.agent(JOIN).register(request)


async def replaced(it: Running) -> None:
    """Their machine lost a GPU, and a person had it replaced."""
    answer = await join(it)
    agent = it.agent(answer.token)
    await agent.heartbeat(pb.HeartbeatRequest(tested=True))
    await it.turn()
    await agent.report(XID_79)
    await it.turn()
    await it.operator.approve_repair(pb.NodeOrder(node=answer.node))
    await it.turn()
    for node in it.nodes(NodeState.BOOTING):
        successor = it.agent((await it.register(node)).token)
        await successor.heartbeat(pb.HeartbeatRequest(tested=True))
    await it.turn()
    assert answer.node not in {node.id for node in it.nodes()}


async def test_a_machine_that_was_replaced_does_not_come_back_with_its_agent():
    disk = MemoryDisk()
    async with running(ADOPTS, disk=disk) as it:
        await replaced(it)
        with pytest.raises(Denied) as refused:
            await join(it, gpus=7)
        assert (refused.value.code, refused.value.hint) == (
            "navarch.replaced",
            "Run navarch pool readmit training theirs once it is repaired.",
        )
        before, cloud = it.nodes(), it.cloud
    async with running(ADOPTS, disk=disk, cloud=cloud) as it:
        with pytest.raises(Denied):
            await join(it, gpus=7)
        assert [node.id for node in it.nodes()] == [node.id for node in before]


async def test_a_person_lets_it_join_again():
    async with running(ADOPTS) as it:
        await replaced(it)
        with pytest.raises(NotFound) as wrong:
            await it.operator.readmit_machine(pb.ReadmitMachineRequest(pool="training", machine="their"))
        assert "theirs" in wrong.value.hint
        pool = await it.operator.readmit_machine(
            pb.ReadmitMachineRequest(pool="training", machine="theirs", why="a new GPU")
        )
        assert pool.barred == []
        await join(it)


async def test_a_machine_that_joins_is_measured_by_its_type_and_not_by_what_it_still_shows():
    async with running(ADOPTS) as it:
        answer = await join(it, gpus=7)
        assert answer.expected_gpus == 8
