"""Nodes, with the fields that a fleet reads."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class Taint(KubeStruct, frozen=True):
    """A taint: keeps pods without a matching toleration away."""

    key: str
    effect: str
    value: str = ""
    added: str | None = field(name="timeAdded", default=None)


class NodeSpec(KubeStruct, frozen=True):
    """The desired state of a node."""

    provider_id: str = field(name="providerID", default="")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeAddress(KubeStruct, frozen=True):
    """One address of a node, for instance InternalIP, ExternalIP or Hostname."""

    type: str
    address: str


class NodeSystemInfo(KubeStruct, frozen=True):
    """The software on a machine, and the machine's identity."""

    machine_id: str = field(name="machineID", default="")
    system_uuid: str = field(name="systemUUID", default="")
    boot_id: str = field(name="bootID", default="")
    kubelet_version: str = ""
    kernel_version: str = ""
    os_image: str = ""
    architecture: str = ""


class NodeStatus(KubeStruct, frozen=True):
    """The state that the kubelet reports."""

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
