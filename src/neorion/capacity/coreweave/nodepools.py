"""NodePools with the fields that are read, and their manifest for an intent."""

import re
from typing import Any, Final

from msgspec import field

from neorion.capacity.provider import Intent, IntentId, Machine, MachineId, MachineState
from neorion.keel.kube import Condition, Kind, KubeObject, KubeStruct, condition, instant
from neorion.keel.kube.core import Node

OWNER: Final = "neorion.dev/owner"
INTENT: Final = "neorion.dev/intent"
SPOT: Final = "spot"
# The label of every node of a pool.
POOL_LABEL: Final = "compute.coreweave.com/node-pool"
COMPUTE_CLASS: Final = "compute.coreweave.com/compute-class"
# The condition of a node that CoreWeave takes out of production when its work has ended.
_PENDING: Final = "PendingPhaseState"
# Kubernetes' own labels for the location of a node.
_REGION: Final = "topology.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
# CoreWeave refuses a pool whose labels are below its own domains.
_RESERVED: Final = re.compile(r"([a-z0-9-]+\.)*coreweave\.(cloud|com)/")
_LABEL_KEY: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class PoolSpec(KubeStruct, frozen=True):
    """The desired state of a pool."""

    compute_class: str = "default"
    instance_type: str = ""
    target_nodes: int | None = None


class PoolStatus(KubeStruct, frozen=True):
    """The observed state of a pool."""

    conditions: tuple[Condition, ...] = ()


class NodePool(KubeObject, frozen=True):
    """Machines of one type."""

    spec: PoolSpec = field(default=PoolSpec())
    status: PoolStatus = field(default=PoolStatus())

    def says(self, kind: str) -> Condition | None:
        """A condition, if it applies to the current generation of the pool."""
        found = condition(self.status.conditions, kind)
        if found is None or (found.observed_generation and found.observed_generation < self.meta.generation):
            return None
        return found


NODE_POOL: Final = Kind(
    NodePool, "NodePool", "nodepools", "compute.coreweave.com", "v1alpha1", namespaced=False
)


def pool_of(intent: Intent) -> dict[str, Any]:
    """The manifest of an intent's pool. Its nodes carry the intent's labels, if Kubernetes accepts them."""
    ours = {OWNER: str(intent.owner), INTENT: str(intent.id)}
    words = {
        key: value
        for key, value in intent.labels
        if _LABEL_KEY.fullmatch(key) and _LABEL_VALUE.fullmatch(value) and not _RESERVED.match(key)
    }
    return {
        "metadata": {"name": str(intent.id), "labels": ours},
        "spec": {
            "computeClass": SPOT if intent.spot else "default",
            "instanceType": intent.instance_type,
            "targetNodes": 1,
            "autoscaling": False,
            "nodeLabels": {**words, **ours},
            # A machine is drained before its pool is deleted, as far as the buyer wants.
            "lifecycle": {"scaleDownStrategy": "PreferIdle"},
        },
    }


def machine_of(pool: NodePool, node: Node | None) -> Machine:
    """Converts a pool and its node to a machine, which has the pool's name, because the pool exists before the node."""
    node = node or Node()
    addresses = {one.type: one.address for one in node.status.addresses}
    return Machine(
        id=MachineId(pool.meta.name),
        intent=IntentId(pool.meta.labels.get(INTENT, "")),
        owner=pool.meta.labels.get(OWNER, ""),
        state=_state(pool, node),
        instance_type=pool.spec.instance_type,
        region=node.meta.labels.get(_REGION, ""),
        zone=node.meta.labels.get(_ZONE, ""),
        name=node.meta.name,
        address=addresses.get("ExternalIP", ""),
        private_address=addresses.get("InternalIP", ""),
        host=node.status.node_info.system_uuid,
        spot=pool.spec.compute_class == SPOT,
        created=instant(pool.meta.created) if pool.meta.created else None,
    )


def reclaim_notice(node: Node) -> str:
    """Why CoreWeave is about to take this spot machine back, or "" while it is not. The node has minutes left."""
    if node.meta.labels.get(COMPUTE_CLASS) != SPOT:
        return ""
    pending = condition(node.status.conditions, _PENDING)
    if pending is None or not pending.holds:
        return ""
    return pending.message or pending.reason or _PENDING


def _state(pool: NodePool, node: Node) -> MachineState:
    if pool.meta.deleted:
        return MachineState.STOPPING
    ready = condition(node.status.conditions, "Ready")
    # A node that was ready once and is not now is still there.
    return MachineState.PENDING if ready is None else MachineState.RUNNING
