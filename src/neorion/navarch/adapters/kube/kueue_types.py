"""What is read of Kueue's workloads. Written by Kueue alone."""

from msgspec import field

from neorion.keel.kube import Condition, Kind, Object, Part
from neorion.keel.kube.core.pods import PodSpec


class TemplateMeta(Part, frozen=True):
    """The labels that the pods of a set will carry."""

    labels: dict[str, str] = field(default_factory=dict)


class Template(Part, frozen=True):
    """The pods of a set."""

    meta: TemplateMeta = field(name="metadata", default=TemplateMeta())
    spec: PodSpec = PodSpec()


class PodSet(Part, frozen=True):
    """So many pods that are alike."""

    name: str = ""
    count: int = 0
    template: Template = Template()


class WorkloadSpec(Part, frozen=True):
    """Everything that starts together."""

    pod_sets: tuple[PodSet, ...] = ()


class WorkloadStatus(Part, frozen=True):
    """How far Kueue has let it."""

    conditions: tuple[Condition, ...] = ()


class Workload(Object, frozen=True):
    """One job in a queue of Kueue."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


WORKLOAD = Kind(Workload, "Workload", "workloads", "kueue.x-k8s.io", "v1beta2")
