"""Adds, starts and removes nodes."""

import itertools
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import anyio
from anyio import to_thread

from neorion.drydock.api import Api, Object
from neorion.drydock.binaries import Tell, ignore_progress
from neorion.drydock.cluster import Cluster
from neorion.drydock.devices import RESOURCE, DeviceTable
from neorion.drydock.host import Component, running, start
from neorion.drydock.images import Registry
from neorion.drydock.layout import Layout
from neorion.drydock.machine import Cgroups, raise_inotify_limit
from neorion.drydock.network import attach_veth, detach_veth, is_attached, route_services
from neorion.drydock.node.config import write_config
from neorion.drydock.node.record import Node, claim, find, nodes
from neorion.drydock.node.spec import PLAIN, HostCapacity, NodeSpec, reserved
from neorion.drydock.pki import Subject
from neorion.keel.base import Conflict, NotFound, Retry, Terminal

_BOOT: Final = Path(__file__).with_name("boot.sh")
_OUR_NETWORK: Final = Path("/proc/self/ns/net")


async def add(cluster: Cluster, name: str, spec: NodeSpec = PLAIN, tell: Tell = ignore_progress) -> Node:
    """Creates a node and returns when it is Ready. The cluster must have its services."""
    # Validated before anything is created.
    reserved(spec, HostCapacity.this())
    node = await claim(cluster.layout, name, spec)
    await bring_up(cluster, node, tell)
    return node


async def bring_up(cluster: Cluster, node: Node, tell: Tell = ignore_progress) -> None:
    """Starts a node that does not run, new or crashed. Keeps one that runs."""
    if running(cluster.layout.folder, node.part):
        if await _is_attached(cluster, node):
            await route_services(cluster.layout.addresses, nodes_up(cluster))
            return
        # The start was interrupted before the node had its network, and without that it gives up.
        await cluster.stop(node.part)
    tell(f"starting node {node.name}")
    _make_identity(cluster, node)
    if node.spec.gpus:
        DeviceTable(node.folder).fill(node.spec.gpus)
    runsc = cluster.shelf.find("runsc")
    sandbox = runsc.parent if runsc is not None else None
    write_config(node, cluster.pki, Registry.of(cluster.layout), cluster.layout.server, sandbox)
    async with cluster.api() as api:
        await _register(api, node)
        await _boot(cluster, node)
        await route_services(cluster.layout.addresses, nodes_up(cluster))
        part = _part(cluster, node)
        await cluster.until(part, lambda: _is_ready(api, node))


async def ensure_nodes(cluster: Cluster, count: int, tell: Tell = ignore_progress) -> None:
    """Restarts every node that does not run, and adds plain ones until there are `count`."""
    known = nodes(cluster.layout)
    free = (
        name
        for number in itertools.count(1)
        if (name := f"node{number}") not in {node.name for node in known}
    )
    async with anyio.create_task_group() as group:
        for node in known:
            group.start_soon(bring_up, cluster, node, tell)
        for name in itertools.islice(free, max(0, count - len(known))):
            group.start_soon(add, cluster, name, PLAIN, tell)


async def remove(cluster: Cluster, name: str) -> None:
    """Removes a node and its pods in any state. Safe to repeat until it is gone."""
    node = find(cluster.layout, name)
    await cluster.stop(node.part)
    await Cgroups().end(node.cgroup, cluster.clock)
    await detach_veth(cluster.layout.addresses, node.index)
    await route_services(cluster.layout.addresses, nodes_up(cluster))
    async with cluster.api() as api:
        await _deregister(api, node)
    for file in (cluster.pki.certificate(node.part), cluster.pki.key(node.part)):
        file.unlink(missing_ok=True)
    cluster.layout.log(node.part).unlink(missing_ok=True)
    # In a thread, because unpacked images are many small files.
    await to_thread.run_sync(shutil.rmtree, node.folder)


def nodes_up(cluster: Cluster) -> list[int]:
    """The indexes of running nodes, Ready or not."""
    live = {process.part for process in running(cluster.layout.folder)}
    return [node.index for node in nodes(cluster.layout) if node.part in live]


def init_pid(layout: Layout, name: str) -> int:
    """The process with a node's namespaces: enter them with nsenter, or kill it to crash the node."""
    node = find(layout, name)
    live = running(layout.folder, node.part)
    found = next((process.pid for process in live if process.argv[0] == "unshare"), None)
    if found is None:
        raise NotFound("node.down", f'Node "{name}" does not run.', hint="Start it: neorion drydock up.")
    return found


def _make_identity(cluster: Cluster, node: Node) -> None:
    pki = cluster.pki
    # One certificate for both uses: as a client it is the node, as a server it has the node's address.
    hosts = (node.name, str(node.address))
    pki.issue(node.part, Subject(f"system:node:{node.name}", ("system:nodes",), hosts))
    pki.issue("kube-proxy", Subject("system:kube-proxy"))


async def _register(api: Api, node: Node) -> None:
    """Creates the Node object first, with labels and taints that a kubelet may not set itself.

    It has a Ready condition, because a kubelet that finds none waits seconds before its first report.
    """
    taints = [
        {"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in node.spec.taints
    ]
    body: Object = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": dict(node.spec.labels)},
        "spec": {"podCIDR": str(node.pods), "podCIDRs": [str(node.pods)], "taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Booting"}]},
    }
    try:
        await api.create("/api/v1/nodes", body)
    except Conflict:
        # From an earlier run of the node, which may have ended while Ready.
        await api.merge(f"/api/v1/nodes/{node.name}/status", {"status": body["status"]})


async def _boot(cluster: Cluster, node: Node) -> None:
    groups = Cgroups()
    addresses = cluster.layout.addresses
    raise_inotify_limit()
    cluster.ledger.record("cgroup", node.cgroup)
    for name in ("system", "pods"):
        groups.make(f"{node.cgroup}/{name}")
    await detach_veth(addresses, node.index)
    pid = start(cluster.layout.folder, _part(cluster, node), cluster.layout.log(node.part))
    await cluster.until(_part(cluster, node), lambda: _require_own_network(pid))
    await attach_veth(addresses, node.index, pid)


async def _is_attached(cluster: Cluster, node: Node) -> bool:
    try:
        return await is_attached(init_pid(cluster.layout, node.name))
    except (NotFound, Terminal):
        # It has no network of its own yet, or ended meanwhile.
        return False


def has_own_network(pid: int) -> bool:
    """Returns whether a node has left the machine's network, which it does soon after its start."""
    return not os.path.samestat(Path(f"/proc/{pid}/ns/net").stat(), _OUR_NETWORK.stat())


async def _require_own_network(pid: int) -> None:
    if not has_own_network(pid):
        raise Retry(
            "node.starting", "The node has no network of its own yet.", hint="It will have in a moment."
        )


def _part(cluster: Cluster, node: Node) -> Component:
    entries = Cgroups().entries(f"{node.cgroup}/system")
    env = {
        "DRYDOCK_NODE": node.name,
        "DRYDOCK_ADDRESS": str(node.address),
        "DRYDOCK_GROUPS": " ".join(str(entry) for entry in entries),
        "DRYDOCK_CLUSTER": str(cluster.layout.folder),
        "DRYDOCK_FOLDER": str(node.folder),
        "DRYDOCK_PROGRAMS": str(cluster.shelf.path("kubelet").parent),
        "DRYDOCK_DEVICES": sys.executable if node.spec.gpus else "",
    }
    return Component(node.part, ("/bin/sh", str(_BOOT)), env)


async def _is_ready(api: Api, node: Node) -> None:
    found = await api.get(f"/api/v1/nodes/{node.name}")
    conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions", [])
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    # Devices are counted a moment after the first report of the kubelet.
    if not ready or int(found["status"]["capacity"].get(RESOURCE, 0)) != node.spec.gpus:
        raise Retry("node.not_ready", f'Node "{node.name}" is not Ready yet.', hint="It will be in a moment.")


async def _deregister(api: Api, node: Node) -> None:
    """Deletes the node and its pods, which would otherwise count as running for another minute."""
    pods = await api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node.name}")
    paths = [
        f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        for pod in pods["items"]
    ]
    for path in (*(f"{path}?gracePeriodSeconds=0" for path in paths), f"/api/v1/nodes/{node.name}"):
        try:
            await api.delete(path)
        except NotFound:
            continue
