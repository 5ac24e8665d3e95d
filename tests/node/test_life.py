"""Nodes come, crash, return and go without leaving anything."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.host import running
from neorion.drydock.machine import Cgroups, ask
from neorion.drydock.node import Node, NodeSpec, Taint, add, bring_up, cluster_cgroup, find, init_pid, remove
from neorion.keel.base import Conflict, Invalid, NotFound, Terminal
from tests.node.pods import ALONE, MINUTES, NEEDS, SLEEP, Kubectl, pod

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

FENCED = NodeSpec(taints=(ALONE,))


@asynccontextmanager
async def _node(cluster: Cluster, name: str, spec: NodeSpec) -> AsyncGenerator[Node]:
    try:
        yield await add(cluster, name, spec)
    finally:
        await remove(cluster, name)


async def _traces(cluster: Cluster, name: str, index: int) -> list[str]:
    """Everything on this machine that speaks of the node."""
    addresses = cluster.layout.addresses
    groups = [hierarchy / cluster_cgroup(cluster.layout) / name for hierarchy in Cgroups().hierarchies()]
    files = [path for path in cluster.layout.folder.rglob(f"*{name}*") if path.name != "effects"]
    found = [str(path) for path in (*groups, *files) if path.exists()]
    found += [str(process) for process in running(cluster.layout.folder, f"node-{name}")]
    links, routes, mounts = (
        await ask(["ip", "link"]),
        await ask(["ip", "route"]),
        Path("/proc/self/mounts").read_text(),
    )
    found += [line for line in links.splitlines() if f" {addresses.wire(index)}@" in line]
    found += [line for line in routes.splitlines() if str(addresses.pods_of(index)) in line]
    return found + [line for line in mounts.splitlines() if str(cluster.layout.folder) in line]


async def test_a_node_offers_what_was_asked_for(node_cluster: Cluster, kubectl: Kubectl):
    spec = NodeSpec(
        labels={"node-role.kubernetes.io/edge": "", "zone": "a"},
        taints=(Taint.parse("reserved=yes:NoSchedule"),),
        cpus="500m",
        memory="2Gi",
        pods=7,
    )
    async with _node(node_cluster, "small", spec):
        node = await kubectl.get("node", "small")
        assert node["metadata"]["labels"].items() >= spec.labels.items()
        assert {"key": "reserved", "value": "yes", "effect": "NoSchedule"} in node["spec"]["taints"]
        offered = node["status"]["allocatable"]
        assert (offered["cpu"], offered["memory"], offered["pods"]) == ("500m", "2Gi", "7")


async def test_a_node_goes_without_a_trace(node_cluster: Cluster, kubectl: Kubectl):
    async with _node(node_cluster, "brief", FENCED) as node:
        await kubectl.run(pod("guest", SLEEP, "brief"))
        assert await _traces(node_cluster, "brief", node.index)
    assert await _traces(node_cluster, "brief", node.index) == []
    assert (await kubectl.get("pods"))["items"] == []
    with pytest.raises(NotFound, match="no real node"):
        await remove(node_cluster, "brief")


async def test_a_crashed_node_is_noticed_returns_with_its_pods_and_goes_without_a_trace(
    node_cluster: Cluster, kubectl: Kubectl
):
    async with _node(node_cluster, "frail", FENCED) as node:
        await kubectl.run(pod("guest", SLEEP, "frail", tolerations=[{"operator": "Exists"}]))
        os.kill(init_pid(node_cluster.layout, "frail"), signal.SIGKILL)
        await kubectl("wait", "node/frail", "--for=condition=Ready=Unknown", "--timeout=180s")
        with pytest.raises(NotFound, match="does not run"):
            init_pid(node_cluster.layout, "frail")
        await bring_up(node_cluster, node)
        await kubectl.until("pod/guest", "{.status.containerStatuses[0].restartCount}", "1")
        os.kill(init_pid(node_cluster.layout, "frail"), signal.SIGKILL)
    assert await _traces(node_cluster, "frail", node.index) == []


async def test_a_node_that_never_got_its_cable_is_started_anew(
    node_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: object) -> None:
        raise Terminal("test.broken", "The maker ends here.", hint="None.")

    try:
        with monkeypatch.context() as early:
            early.setattr("neorion.drydock.node.lifecycle.attach_veth", broken)
            with pytest.raises(Terminal, match="ends here"):
                await add(node_cluster, "cut", FENCED)
        await bring_up(node_cluster, find(node_cluster.layout, "cut"))
        assert await node_cluster.kubectl("get", "--raw", "/api/v1/nodes/cut/proxy/healthz") == "ok"
    finally:
        await remove(node_cluster, "cut")


@pytest.mark.parametrize("program", ["containerd", "kubelet", "kube-proxy"])
async def test_a_program_of_a_node_that_ends_is_started_again_and_pods_do_not_notice(
    node_cluster: Cluster, kubectl: Kubectl, program: str
):
    async with _node(node_cluster, f"kept-{program}", FENCED) as node:
        await kubectl.run(pod("guest", SLEEP, node.name))
        old = _pid(node_cluster, node, program)
        os.kill(old, signal.SIGKILL)
        # The boot script says when it has begun again: nothing else writes to the log of a program that is gone.
        await kubectl.run(pod("late", SLEEP, node.name))
        assert _pid(node_cluster, node, program) != old
        status = (await kubectl.get("pod", "guest"))["status"]["containerStatuses"][0]
        assert (status["restartCount"], status["ready"]) == (0, True)


def _pid(cluster: Cluster, node: Node, program: str) -> int:
    found = running(cluster.layout.folder, node.part)
    return next(process.pid for process in found if process.argv[0].rpartition("/")[2] == program)


async def test_what_cannot_be_made_is_refused_before_anything_is(node_cluster: Cluster):
    before = list((node_cluster.layout.folder / "nodes").iterdir())
    with pytest.raises(Conflict, match="already has a node"):
        await add(node_cluster, "node1")
    with pytest.raises(Invalid, match="cannot be a node's name"):
        await add(node_cluster, "Node_1")
    with pytest.raises(Invalid, match="cannot offer 4096 of cpu"):
        await add(node_cluster, "huge", NodeSpec(cpus="4096"))
    assert list((node_cluster.layout.folder / "nodes").iterdir()) == before
