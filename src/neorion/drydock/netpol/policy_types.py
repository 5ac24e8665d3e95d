"""NetworkPolicies, and the parts of pods and namespaces that they select by."""

from collections.abc import Mapping
from typing import Final

from msgspec import field

from neorion.keel.kube import Kind, KubeObject, KubeStruct


class LabelRequirement(KubeStruct, frozen=True):
    """One expression of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False


class LabelSelector(KubeStruct, frozen=True):
    """Selects by labels. The empty selector selects everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        same = all(labels.get(key) == value for key, value in self.match_labels.items())
        return same and all(each.matches(labels) for each in self.match_expressions)


class IpBlock(KubeStruct, frozen=True):
    """A range of addresses, less the ranges in `excluded`."""

    cidr: str
    excluded: tuple[str, ...] = field(name="except", default=())


class PolicyPeer(KubeStruct, frozen=True):
    """The other end of a connection: pods, or a range of addresses."""

    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    ip_block: IpBlock | None = None


class PolicyPort(KubeStruct, frozen=True):
    """A port by number, by the name that a container gives it, or a range."""

    protocol: str = "TCP"
    port: int | str | None = None
    end_port: int | None = None


class IngressRule(KubeStruct, frozen=True):
    """Connections to the selected pods that are allowed. Without peers they may come from anywhere."""

    peers: tuple[PolicyPeer, ...] = field(name="from", default=())
    ports: tuple[PolicyPort, ...] = ()


class EgressRule(KubeStruct, frozen=True):
    """Connections from the selected pods that are allowed. Without peers they may go anywhere."""

    peers: tuple[PolicyPeer, ...] = field(name="to", default=())
    ports: tuple[PolicyPort, ...] = ()


class NetworkPolicySpec(KubeStruct, frozen=True):
    """The pods that a policy holds, the directions, and the connections that it allows."""

    pod_selector: LabelSelector = LabelSelector()
    policy_types: tuple[str, ...] = ()
    ingress: tuple[IngressRule, ...] = ()
    egress: tuple[EgressRule, ...] = ()


class NetworkPolicy(KubeObject, frozen=True):
    """A NetworkPolicy."""

    spec: NetworkPolicySpec = NetworkPolicySpec()


class ContainerPort(KubeStruct, frozen=True):
    """A port of a container that has a name."""

    number: int = field(name="containerPort")
    name: str = ""
    protocol: str = "TCP"


class PolicyContainer(KubeStruct, frozen=True):
    """A container of a pod, as its ports."""

    ports: tuple[ContainerPort, ...] = ()


class PolicyPodSpec(KubeStruct, frozen=True):
    """The node of a pod, and its ports."""

    node_name: str = ""
    host_network: bool = False
    containers: tuple[PolicyContainer, ...] = ()


class PolicyPodStatus(KubeStruct, frozen=True):
    """The address of a pod."""

    phase: str = ""
    pod_ip: str = field(name="podIP", default="")


class PolicyPod(KubeObject, frozen=True):
    """A pod, as far as policies read it."""

    spec: PolicyPodSpec = PolicyPodSpec()
    status: PolicyPodStatus = PolicyPodStatus()

    @property
    def has_address(self) -> bool:
        """Returns whether packets of its address are its own. Those of a pod in its node's network are the node's."""
        ended = self.status.phase in {"Succeeded", "Failed"}
        return bool(self.status.pod_ip) and not ended and not self.spec.host_network


NETWORK_POLICY: Final = Kind(NetworkPolicy, "NetworkPolicy", "networkpolicies", "networking.k8s.io")
POLICY_POD: Final = Kind(PolicyPod, "Pod", "pods")
