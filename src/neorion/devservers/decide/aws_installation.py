"""Checks an installation on AWS: drivers, volumes, machines, the device plugin, the load balancer, roles."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from neorion.devservers.model import DevServerFlavorSpec
from neorion.keel.base import Finding, Severity

_EBS, _EFS = "ebs.csi.aws.com", "efs.csi.aws.com"
_HOME, _SHARED = "devservers-home", "devservers-shared"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
FAMILY: Final = "karpenter.k8s.aws/instance-family"
_CODE: Final = "devservers.aws"


@dataclass(frozen=True, slots=True)
class NodePoolOffer:
    """The instance types and families that one NodePool of Karpenter buys. Empty means any."""

    types: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()

    def sells(self, instance_type: str) -> bool:
        family = instance_type.partition(".")[0]
        return (not self.types or instance_type in self.types) and (
            not self.families or family in self.families
        )


@dataclass(frozen=True, slots=True)
class AwsFacts:
    """The parts of an installation on AWS that a cluster has."""

    drivers: frozenset[str]
    # Storage class to its provisioner.
    storage_classes: dict[str, str]
    default_class: str
    # Flavor to its instance type; flavors without one are not of EC2.
    flavors: dict[str, str]
    node_types: frozenset[str]
    # None without Karpenter.
    node_pools: tuple[NodePoolOffer, ...] | None
    gpu_flavors: frozenset[str]
    device_plugin: bool
    # None without a bastion; empty while its load balancer has no address.
    bastion_address: str | None
    bastion_type: str
    metrics_role: str


def flavor_types(flavors: Iterable[tuple[str, DevServerFlavorSpec]]) -> dict[str, str]:
    """The instance type that each flavor selects."""
    return {
        name: spec.node_selector[INSTANCE_TYPE]
        for name, spec in flavors
        if INSTANCE_TYPE in spec.node_selector
    }


def check_aws(facts: AwsFacts) -> tuple[Finding, ...]:
    """One finding for each part, the sound ones included."""
    return (*_volumes(facts), *_machines(facts), *_gpus(facts), *_bastion(facts), *_metrics(facts))


def _volumes(facts: AwsFacts) -> Iterator[Finding]:
    for driver, class_, what in ((_EBS, _HOME, "homes"), (_EFS, _SHARED, "shared volumes")):
        # Without a file system there are no shared volumes, which a cluster may choose.
        missing = Severity.ERROR if driver == _EBS else Severity.WARNING
        if driver not in facts.drivers:
            yield Finding(
                missing,
                _CODE,
                driver,
                f"The CSI driver of {what} is not installed.",
                f"Add the EKS add-on {_ADDONS[driver]}.",
            )
        if facts.storage_classes.get(class_) != driver:
            yield Finding(
                missing,
                _CODE,
                class_,
                f"There is no storage class {class_} of {driver}.",
                _CLASS_HINTS[class_],
            )
        elif driver in facts.drivers:
            yield _sound(class_, f"Volumes for {what} are made by {driver}.")
    if facts.default_class != _HOME:
        named = facts.default_class or "none"
        yield Finding(
            Severity.WARNING,
            _CODE,
            _HOME,
            f"The default storage class is {named}, and homes that name no class get that.",
            f"Mark {_HOME} as the default class, and no other.",
        )


_ADDONS: Final = {_EBS: "aws-ebs-csi-driver", _EFS: "aws-efs-csi-driver"}
_CLASS_HINTS: Final = {
    _HOME: "Run devctl install aws again.",
    _SHARED: "Run devctl install aws again with --efs.",
}


def _machines(facts: AwsFacts) -> Iterator[Finding]:
    if facts.node_pools is None:
        yield Finding(
            Severity.WARNING,
            _CODE,
            "karpenter",
            "Karpenter is not installed: machines are not bought when servers wait for them.",
            "Install Karpenter, or make a node group for each flavor.",
        )
    for flavor, instance_type in sorted(facts.flavors.items()):
        bought = any(pool.sells(instance_type) for pool in facts.node_pools or ())
        if bought or instance_type in facts.node_types:
            continue
        yield Finding(
            Severity.ERROR,
            _CODE,
            flavor,
            f"There is no node of type {instance_type}, and no NodePool buys one.",
            f"Allow {instance_type} in a NodePool, or delete the flavor.",
        )


def _gpus(facts: AwsFacts) -> Iterator[Finding]:
    if not facts.gpu_flavors:
        return
    if facts.device_plugin:
        yield _sound("nvidia-device-plugin", "A device plugin offers NVIDIA GPUs.")
        return
    yield Finding(
        Severity.ERROR,
        _CODE,
        "nvidia-device-plugin",
        f"No device plugin offers NVIDIA GPUs, and {len(facts.gpu_flavors)} flavors need them.",
        "Run devctl install aws again.",
    )


def _bastion(facts: AwsFacts) -> Iterator[Finding]:
    match facts.bastion_address:
        case None:
            yield Finding(
                Severity.WARNING,
                _CODE,
                "devservers-bastion",
                "There is no SSH bastion.",
                "Run devctl install aws again.",
            )
        case "" if facts.bastion_type == "LoadBalancer":
            yield Finding(
                Severity.ERROR,
                _CODE,
                "devservers-bastion",
                "The bastion's load balancer has no address.",
                "Install the AWS Load Balancer Controller, and look at the events of the Service.",
            )
        case "":
            yield Finding(
                Severity.WARNING,
                _CODE,
                "devservers-bastion",
                "The bastion is reached from inside the cluster alone.",
                "Run devctl install aws again, or forward its port.",
            )
        case address:
            yield _sound("devservers-bastion", f"The bastion is at {address}.")


def _metrics(facts: AwsFacts) -> Iterator[Finding]:
    if facts.metrics_role:
        yield _sound("devservers-metrics", f"Metrics are published as {facts.metrics_role}.")
        return
    yield Finding(
        Severity.WARNING,
        _CODE,
        "devservers-metrics",
        "The account that publishes metrics has no role.",
        "Annotate it with eks.amazonaws.com/role-arn, or give it a Pod Identity.",
    )


def _sound(subject: str, sentence: str) -> Finding:
    return Finding(Severity.INFO, _CODE, subject, sentence)
