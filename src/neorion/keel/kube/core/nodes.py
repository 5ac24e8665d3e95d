"""Nodes, as a fleet reads them."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class Taint(KubeStruct, frozen=True):
    """Keeps pods away that do not tolerate it."""

    key: str
    effect: str
    value: str = ""
    added: str | None = field(name="timeAdded", default=None)


class NodeSpec(KubeStruct, frozen=True):
    """What is asked of a node."""

    provider_id: str = field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeAddress(KubeStruct, frozen=True):
    """One way to reach a node: InternalIP, ExternalIP or Hostname, for instance."""

    type: str
    address: str


class NodeSystemInfo(KubeStruct, frozen=True):
    """What runs on the machine, and which machine it is."""

    machine_id: str = field(name="machineID", default="")
    system_uuid: str = field(name="systemUUID", default="")
    boot_id: str = field(name="bootID", default="")
    kubelet_version: str = ""
    kernel_version: str = ""
    os_image: str = ""
    architecture: str = ""


class NodeStatus(KubeStruct, frozen=True):
    """What the kubelet reports."""

    capacity: dict[str, str] = field(default_factory=dict)
    allocatable: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(KubeObject, frozen=True):
    """A machine of the cluster."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


NODE = Kind(Node, "Node", "nodes", namespaced=False)
