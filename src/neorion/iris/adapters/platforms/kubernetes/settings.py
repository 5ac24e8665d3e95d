"""Settings of the platform: the installation, and a template for each scale group."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from neorion.keel.base import Duration

# On fresh CoreWeave nodes, and on GPU nodes of most clouds.
TOLERATED: Final = (("nvidia.com/gpu", "NoSchedule"), ("qos.coreweave.cloud/interruptable", "NoExecute"))


@dataclass(frozen=True, slots=True)
class PoolTemplate:
    """The NodePool of a slice on CoreWeave; a `shared` one serves all slices of its scale group."""

    instance_type: str
    compute_class: str = "default"
    annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    shared: bool = False


@dataclass(frozen=True, slots=True)
class GroupTemplate:
    """The template of the slices of one scale group. With a pool its machines are bought; without one its Pods wait for nodes.

    With `task_pods` each attempt is a Pod of its own, and the worker Pod only makes them.
    """

    pool: PoolTemplate | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    infiniband: bool = False
    task_pods: bool = False


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """One installation in one namespace of one cluster. `controller` is the address that workers use.

    Objects carry labels that begin with `label_prefix`. `capacity_patience` is how long a NodePool may wait in
    CoreWeave's queue. A new slice waits `acceptance_timeout` for CoreWeave to accept or refuse it.
    """

    namespace: str
    controller: str
    image: str
    groups: Mapping[str, GroupTemplate]
    task_image: str = ""
    label_prefix: str = "iris"
    pull_secrets: tuple[str, ...] = ()
    host_network: bool = False
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    stop_grace: Duration = field(default=Duration.of(seconds=30))
    capacity_patience: Duration = field(default=Duration.of(minutes=10))
    acceptance_timeout: Duration = field(default=Duration.of(seconds=5))
