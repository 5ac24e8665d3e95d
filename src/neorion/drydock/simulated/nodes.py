"""Simulated nodes: KWOK maintains them, and the API server treats them like real ones."""

from ipaddress import IPv4Network
from typing import Final

import anyio

from neorion.drydock.api import Api, Object
from neorion.drydock.binaries import Tell, build_missing, ignore_progress
from neorion.drydock.cluster import Cluster
from neorion.drydock.host import Component
from neorion.drydock.layout import Layout
from neorion.drydock.pki import Subject
from neorion.drydock.simulated.stages import stages
from neorion.drydock.simulated.types import SimulatedNodeGroup, machine_type
from neorion.keel.base import Deadline, Duration, NotFound, did_you_mean

# The label with the type of a simulated node, and the annotation by which KWOK selects its nodes.
LABEL: Final = "drydock.neorion.dev/simulated"
PLAYED: Final = "kwok.x-k8s.io/node"
# A spec for the node's Lease with another holder, so that KWOK stops renewing it and the node becomes NotReady.
SILENCE: Final = {"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 100_000_000}}
# Used if the cluster has real nodes too: pods run on those unless they tolerate it.
_TAINT: Final = {"key": PLAYED, "value": "fake", "effect": "NoSchedule"}
# Renewed every quarter of it. Much longer, and the controller manager takes nodes for lost (it waits 10 s).
_LEASE_S: Final = 20
_AT_ONCE: Final = 16
_READY_MOST: Final = Duration.of(seconds=60)
_POLL_EVERY: Final = Duration.of(ms=100)


def _networks(layout: Layout) -> tuple[IPv4Network, IPv4Network]:
    """The addresses of simulated nodes, and of the pods on them."""
    nodes, pods = layout.addresses.simulated.subnets(new_prefix=17)
    return nodes, pods


def _kwok(cluster: Cluster) -> Component:
    layout = cluster.layout
    flags = {
        "kubeconfig": layout.kubeconfig_of("kwok"),
        "manage-nodes-with-annotation-selector": f"{PLAYED}=fake",
        "cidr": _networks(layout)[1],
        "node-lease-duration-seconds": _LEASE_S,
        "config": layout.data("kwok.yaml"),
        # By default it would log every renewal.
        "v": "WARN",
    }
    program = str(cluster.shelf.path("kwok"))
    return Component("kwok", (program, *(f"--{flag}={value}" for flag, value in flags.items())))


async def start_kwok(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Starts KWOK. Needed once, before the first simulated node."""
    layout = cluster.layout
    await build_missing(cluster.shelf, ["kwok"], tell)
    cluster.pki.issue("kwok", Subject("drydock-kwok", ("system:masters",)))
    cluster.pki.kubeconfig(layout.kubeconfig_of("kwok"), "kwok", layout.server)
    async with cluster.api() as api:
        version = (await api.get("/version"))["gitVersion"]
    layout.data("kwok.yaml").write_text(stages(version))
    await cluster.ensure(_kwok(cluster))


async def resume_kwok(cluster: Cluster, tell: Tell = ignore_progress) -> None:
    """Restarts KWOK if the cluster had simulated nodes."""
    if cluster.layout.data("kwok.yaml").exists():
        await start_kwok(cluster, tell)


async def ensure_simulated(cluster: Cluster, group: SimulatedNodeGroup) -> None:
    """Adds missing nodes up to the group's count."""
    async with cluster.api() as api:
        there = await api.get(f"/api/v1/nodes?labelSelector={LABEL}={group.type}")
    missing = group.count - len(there["items"])
    if missing > 0:
        await add_simulated(cluster, SimulatedNodeGroup(missing, group.type))


async def add_simulated(cluster: Cluster, group: SimulatedNodeGroup, tell: Tell = ignore_progress) -> None:
    """Adds nodes and returns when all of them are Ready."""
    await start_kwok(cluster, tell)
    async with cluster.api() as api:
        taken = await _names(api)
        free = (number for number in range(len(taken) + group.count) if _name(group, number) not in taken)
        numbers = [next(free) for _ in range(group.count)]
        bodies = [
            _node(cluster.layout, group, number, len(taken) + place) for place, number in enumerate(numbers)
        ]
        limit = anyio.CapacityLimiter(_AT_ONCE)

        async def create(body: Object) -> None:
            async with limit:
                await api.create("/api/v1/nodes", body)

        async with anyio.create_task_group() as tasks:
            for body in bodies:
                tasks.start_soon(create, body)
        await _until_ready(cluster, api, {body["metadata"]["name"] for body in bodies})


async def remove_simulated(cluster: Cluster, name: str) -> None:
    """Removes a node and its pods, like a machine that was taken away."""
    async with cluster.api() as api:
        names = await _names(api)
        if name not in names:
            raise NotFound(
                "drydock.no_node",
                f'Cluster {cluster.name} has no node "{name}".',
                hint=did_you_mean(name, names),
            )
        await api.delete(f"/api/v1/nodes/{name}")


async def fail_simulated(cluster: Cluster, name: str) -> None:
    """Stops the heartbeat of a node, as if its machine had died. It is NotReady ten seconds later, until it is removed."""
    async with cluster.api() as api:
        await api.merge(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}", SILENCE)


async def check_simulated(cluster: Cluster) -> None:
    """Taints simulated nodes, so that only pods with a toleration run on them."""
    async with cluster.api() as api:
        listed = await api.get(f"/api/v1/nodes?labelSelector={LABEL}")
        for node in listed["items"]:
            taints = node["spec"].get("taints", [])
            if _TAINT not in taints:
                change = {"spec": {"taints": [*taints, _TAINT]}}
                await api.merge(f"/api/v1/nodes/{_name_of(node)}", change)


async def _names(api: Api) -> set[str]:
    return {node["metadata"]["name"] for node in (await api.get("/api/v1/nodes"))["items"]}


def _name(group: SimulatedNodeGroup, number: int) -> str:
    return f"{group.type}-{number:04d}"


def _node(layout: Layout, group: SimulatedNodeGroup, number: int, place: int) -> Object:
    kind, name = machine_type(group.type), _name(group, number)
    # From the second on, because the first address is the network's own.
    address = str(_networks(layout)[0][1 + place])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {PLAYED: "fake"},
            "labels": {**kind.labels(number), "kubernetes.io/hostname": name, LABEL: group.type},
        },
        "spec": {"providerID": f"drydock://{name}", "taints": [_TAINT] if layout.networked else []},
        "status": {
            "capacity": kind.resources,
            "allocatable": kind.resources,
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        },
    }


async def _until_ready(cluster: Cluster, api: Api, names: set[str]) -> None:
    with anyio.move_on_after(_READY_MOST.seconds):
        while not names <= {_name_of(node) for node in await _ready(api)}:
            await cluster.clock.sleep(_POLL_EVERY)
        return
    raise Deadline(
        "drydock.nodes_slow",
        f"Not all simulated nodes were Ready within {_READY_MOST}.",
        hint=f"Read the log: neorion drydock logs kwok --name {cluster.name}",
    )


async def _ready(api: Api) -> list[Object]:
    listed = await api.get(f"/api/v1/nodes?labelSelector={LABEL}")
    return [node for node in listed["items"] if _is_ready(node)]


def _is_ready(node: Object) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _name_of(node: Object) -> str:
    return node["metadata"]["name"]
