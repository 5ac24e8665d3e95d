"""Labels, taints and conditions that CoreWeave puts on its nodes. It reserves their keys: pools may not set them."""

from typing import Any, Final

from neorion.drydock.coreweave.nodepool_types import POOL, NodePool
from neorion.drydock.simulated import MachineType
from neorion.keel.base import Instant
from neorion.keel.kube import Condition, condition, time_text
from neorion.keel.kube.core import Node

POOL_UID: Final = "compute.coreweave.com/node-pool-uid"
COMPUTE_CLASS: Final = "compute.coreweave.com/compute-class"
STATE: Final = "node.coreweave.cloud/state"
PENDING_STATE: Final = "node.coreweave.cloud/pending-state"
CORDON_REASON: Final = "node.coreweave.cloud/cordonReason"
ACTIVE: Final = "CWActive"
PENDING: Final = "PendingPhaseState"
# On nodes that have just come.
FRESH: Final = {"key": "qos.coreweave.cloud/interruptable", "value": "true", "effect": "NoExecute"}
_CLASSES: Final = {
    "NVIDIA-H100-80GB-HBM3": ("H100_NVLINK_80GB", "H100"),
    "NVIDIA-H200": ("H200", "H200"),
    "NVIDIA-A100-SXM4-80GB": ("A100_NVLINK_80GB", "A100"),
    "NVIDIA-L40S": ("L40S", "L40S"),
    "NVIDIA-GB200": ("GB200", "GB200"),
}
# A leaf switch serves so many machines.
_LEAF_NODES: Final = 16


def labels_of(pool: NodePool, kind: MachineType, number: int) -> dict[str, str]:
    """Labels of the pool's node with this number. A cluster stands in one zone."""
    found = {
        **kind.labels(0),
        POOL: pool.meta.name,
        POOL_UID: pool.meta.uid,
        COMPUTE_CLASS: pool.spec.compute_class,
        "node.coreweave.cloud/type": kind.instance,
        "node.coreweave.cloud/class": "gpu" if kind.gpus else "cpu",
        STATE: "production",
    }
    if kind.gpus:
        family, model = _CLASSES.get(kind.product, (kind.product, kind.product))
        found |= {"gpu.nvidia.com/class": family, "gpu.nvidia.com/model": model}
    if kind.infiniband:
        leaf = str(number // _LEAF_NODES + 1)
        for prefix in ("backend.coreweave.cloud", "ib.coreweave.cloud"):
            found |= {f"{prefix}/fabric": "1", f"{prefix}/superpod": "1", f"{prefix}/leafgroup": leaf}
        found["backend.coreweave.cloud/flavor"] = "infiniband"
    if kind.rack_nodes:
        found["ds.coreweave.com/nvlink.domain"] = f"{pool.meta.name}-{number // kind.rack_nodes}"
    return found


def conditions_of(node: Node, now: Instant, *, active: bool, reclaim: str) -> tuple[Condition, ...]:
    """The node's conditions with CoreWeave's own; the same object where nothing has changed."""
    said = {
        ACTIVE: Condition(ACTIVE, "True" if active else "False", "PodsRunning" if active else "Idle"),
        **({PENDING: Condition(PENDING, "True", "SpotReclaim", reclaim)} if reclaim else {}),
    }
    before = node.status.conditions
    turned = [one for one in said.values() if _differs(condition(before, one.type), one)]
    if not turned:
        return before
    kept = [one for one in before if one.type not in {new.type for new in turned}]
    since = time_text(now)
    return (*kept, *(Condition(one.type, one.status, one.reason, one.message, 0, since) for one in turned))


def _differs(before: Condition | None, after: Condition) -> bool:
    return before is None or (before.status, before.reason) != (after.status, after.reason)


def pending_mark(reason: str) -> dict[str, Any]:
    """Labels and annotations of a node that CoreWeave is about to take."""
    return {"labels": {PENDING_STATE: "spot-reclaim"}, "annotations": {CORDON_REASON: reason}}
