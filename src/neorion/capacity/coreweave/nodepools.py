"""NodePools, as far as they are read, and how a machine is asked for with one."""

import re
from typing import Any, Final

from msgspec import field

from neorion.capacity.provider import Intent, IntentId, Machine, MachineId, MachineState
from neorion.keel.kube import Condition, Kind, KubeObject, KubeStruct, condition, instant
from neorion.keel.kube.core import Node

OWNER: Final = "neorion.dev/owner"
INTENT: Final = "neorion.dev/intent"
SPOT: Final = "spot"
# On every node of a pool.
POOL_LABEL: Final = "compute.coreweave.com/node-pool"
COMPUTE_CLASS: Final = "compute.coreweave.com/compute-class"
# CoreWeave is about to take the node out of production, and waits for what runs there.
_PENDING: Final = "PendingPhaseState"
# Kubernetes' own labels for where a node stands.
_REGION: Final = "topology.kubernetes.io/region"
_ZONE: Final = "topology.kubernetes.io/zone"
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
# CoreWeave refuses a pool whose labels are below its own domains.
_RESERVED: Final = re.compile(r"([a-z0-9-]+\.)*coreweave\.(cloud|com)/")
_LABEL_KEY: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class PoolSpec(KubeStruct, frozen=True):
    """The request."""

    compute_class: str = "default"
    instance_type: str = ""
    target_nodes: int | None = None


class PoolStatus(KubeStruct, frozen=True):
    """CoreWeave's answer."""

    conditions: tuple[Condition, ...] = ()


class NodePool(KubeObject, frozen=True):
    """Machines of one type."""

    spec: PoolSpec = field(default=PoolSpec())
    status: PoolStatus = field(default=PoolStatus())

    def says(self, kind: str) -> Condition | None:
        """A condition, if it is about the pool as it is now."""
        found = condition(self.status.conditions, kind)
        if found is None or (found.observed_generation and found.observed_generation < self.meta.generation):
            return None
        return found


NODE_POOL: Final = Kind(
    NodePool, "NodePool", "nodepools", "compute.coreweave.com", "v1alpha1", namespaced=False
)


def pool_of(intent: Intent) -> dict[str, Any]:
    """The pool of an intent. Its nodes carry the intent's labels, as far as Kubernetes and CoreWeave take them."""
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
            # The caller has emptied the machine as far as it wants to.
            "lifecycle": {"scaleDownStrategy": "PreferIdle"},
        },
    }


def machine_of(pool: NodePool, node: Node | None) -> Machine:
    """The machine is called by its pool, which is there before it; its node tells the rest."""
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
