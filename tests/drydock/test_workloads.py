"""Simulated nodes and Kueue: pods are placed, run and end as on machines that exist."""

import os
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.simulated import (
    EXIT_CODE,
    LABEL,
    RUNS_FOR,
    TYPES,
    SimulatedNodeGroup,
    add_simulated,
    check_simulated,
    machine_type,
    remove_simulated,
)
from neorion.keel.base import Invalid, NotFound
from tests.drydock.workloads import GPU, apply, job, pod, queue, wait

FLEET = ClusterOptions(simulated=(SimulatedNodeGroup(3, "h100x8"),), kueue=True)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("fleet"))})
    try:
        yield anyio.run(yard.up, "fleet", FLEET)
    finally:
        anyio.run(yard.down, "fleet")


@pytest.mark.anyio
@pytest.mark.needs("drydock")
@pytest.mark.timeout(480)
async def test_nodes_have_what_their_machines_have(fleet: Cluster):
    async with fleet.api() as api:
        nodes = (await api.get(f"/api/v1/nodes?labelSelector={LABEL}=h100x8"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["h100x8-0000", "h100x8-0001", "h100x8-0002"]
    labels = [node["metadata"]["labels"] for node in nodes]
    assert {each["node.kubernetes.io/instance-type"] for each in labels} == {"gd-8xh100ib-i128"}
    assert len({each["topology.kubernetes.io/zone"] for each in labels}) == 2
    assert {node["status"]["allocatable"][GPU] for node in nodes} == {"8"}
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 3


@pytest.mark.anyio
@pytest.mark.needs("drydock")
@pytest.mark.timeout(480)
async def test_a_pod_ends_when_and_as_it_says(fleet: Cluster):
    fails, stays = pod({RUNS_FOR: "10ms", EXIT_CODE: "3"}, 1), pod({}, 1)
    fails["metadata"]["name"], stays["metadata"]["name"] = "fails", "stays"
    await apply(fleet, fails, stays)
    await wait(fleet, "pod/stays", "condition=Ready")
    await wait(fleet, "pod/fails", "jsonpath={.status.phase}=Failed")
    async with fleet.api() as api:
        failed = await api.get("/api/v1/namespaces/default/pods/fails")
        running = await api.get("/api/v1/namespaces/default/pods/stays")
        await api.delete("/api/v1/namespaces/default/pods/stays")
    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert running["status"]["phase"] == "Running"


@pytest.mark.anyio
@pytest.mark.needs("drydock")
@pytest.mark.timeout(480)
async def test_a_job_waits_for_quota_and_then_runs(fleet: Cluster):
    await apply(fleet, *queue("small", gpus=8))
    await apply(fleet, job("first", "small", "1h"))
    await wait(fleet, "job/first", "jsonpath={.status.ready}=1")
    await apply(fleet, job("second", "small", "10ms"))
    # It waits for quota alone: two of three machines are free.
    await wait(fleet, "job/second", "condition=Suspended")
    await fleet.kubectl("delete", "job", "first")
    await wait(fleet, "job/second", "condition=Complete")


@pytest.mark.anyio
@pytest.mark.needs("drydock")
@pytest.mark.timeout(480)
async def test_nodes_come_go_and_are_kept_for_those_who_ask(fleet: Cluster):
    await add_simulated(fleet, SimulatedNodeGroup(2, "cpu"))
    await remove_simulated(fleet, "cpu-0000")
    with pytest.raises(NotFound) as caught:
        await remove_simulated(fleet, "cpu-000")
    assert caught.value.hint == 'did you mean "cpu-0001"?'
    # A free name is taken before a new one.
    await add_simulated(fleet, SimulatedNodeGroup(1, "cpu"))
    await check_simulated(fleet)
    async with fleet.api() as api:
        nodes = (await api.get(f"/api/v1/nodes?labelSelector={LABEL}=cpu"))["items"]
        for name in ("cpu-0000", "cpu-0001"):
            await api.delete(f"/api/v1/nodes/{name}")
    assert [node["metadata"]["name"] for node in nodes] == ["cpu-0000", "cpu-0001"]
    assert all("NoSchedule" in str(node["spec"]["taints"]) for node in nodes)


@pytest.mark.anyio
@pytest.mark.needs("drydock")
@pytest.mark.timeout(480)
async def test_nothing_was_written_outside_the_clusters_folder(fleet: Cluster):
    """Kueue, left to itself, keeps certificates in folders of the machine."""
    assert fleet.layout.folder.exists()
    assert not Path("/visibility").exists()
    assert not Path("/etc/kueue").exists()


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "5001", "3:", ":cpu", "3:h100"])
def test_what_does_not_say_how_many_of_what_is_refused(text: str):
    if text == "3:":
        assert SimulatedNodeGroup.parse(text) == SimulatedNodeGroup(3)
        return
    with pytest.raises(Invalid):
        SimulatedNodeGroup.parse(text)


def test_a_machine_type_is_known_by_both_its_names():
    for name, kind in TYPES.items():
        assert machine_type(name) == machine_type(kind.instance) == kind
