"""NodePools as the player reads and reports them."""

from enum import StrEnum
from typing import Any, Final

from msgspec import field

from neorion.drydock.coreweave.crd import GROUP, VERSION
from neorion.keel.kube import Condition, Kind, KubeObject, KubeStruct

# On a pool: what is to go wrong with it, one word of `Fault`; and how long its nodes boot.
FAULT: Final = "drydock.neorion.dev/fault"
# On a pool and its nodes: what their machines are, one word of `NodeBacking`; simulated unless it says otherwise.
# On a pool: how long a node that is reclaimed has left, where it is not seven minutes.
NOTICE: Final = "drydock.neorion.dev/reclaim-notice"
# On a pool: "true" gives its conditions the names that they had before 2026.
OLD_NAMES: Final = "drydock.neorion.dev/old-names"
MACHINES: Final = "drydock.neorion.dev/machines"
POOL: Final = "compute.coreweave.com/node-pool"
# NVL72: a rack is 18 machines of four GPUs.
RACK_NODES: Final = 18


class NodeBacking(StrEnum):
    """The machines behind a pool's nodes."""

    SIMULATED = "simulated"
    REAL = "real"


class Lifecycle(KubeStruct, frozen=True):
    """Which nodes may go when there are too many."""

    scale_down_strategy: str = "IdleOnly"


class PoolSpec(KubeStruct, frozen=True):
    """The request. Zero nodes are not the same as no number."""

    instance_type: str = ""
    compute_class: str = "default"
    target_nodes: int | None = None
    target_racks: int | None = None
    node_labels: dict[str, str] = field(default_factory=dict)
    node_annotations: dict[str, str] = field(default_factory=dict)
    node_taints: tuple[dict[str, Any], ...] = ()
    lifecycle: Lifecycle = Lifecycle()

    @property
    def target(self) -> int:
        return self.target_nodes if self.target_nodes is not None else (self.target_racks or 0) * RACK_NODES


class PoolStatus(KubeStruct, frozen=True, omit_defaults=False):
    """The nodes there are, and why there are not more."""

    current_nodes: int = 0
    in_progress: int = 0
    in_progress_nodes: int = 0
    queued_nodes: int = 0
    prefill_nodes: int = 0
    capacity: str = ""
    quota: str = ""
    conditions: tuple[Condition, ...] = ()


class NodePool(KubeObject, frozen=True):
    """Machines of one type."""

    spec: PoolSpec = PoolSpec()
    status: PoolStatus = PoolStatus()

    @property
    def machines(self) -> str:
        return self.meta.annotations.get(MACHINES) or NodeBacking.SIMULATED


NODE_POOL: Final = Kind(NodePool, "NodePool", "nodepools", GROUP, VERSION, namespaced=False)
