"""Fields of Kueue's workloads that navarch reads. Only Kueue writes them."""

from msgspec import field

from neorion.keel.kube import Condition, Kind, KubeObject, KubeStruct
from neorion.keel.kube.core.pods import PodSpec


class TemplateMeta(KubeStruct, frozen=True):
    """The labels that the pods of a set will carry."""

    labels: dict[str, str] = field(default_factory=dict)


class Template(KubeStruct, frozen=True):
    """The pods of a set."""

    meta: TemplateMeta = field(name="metadata", default=TemplateMeta())
    spec: PodSpec = PodSpec()


class PodSet(KubeStruct, frozen=True):
    """So many pods that are alike."""

    name: str = ""
    count: int = 0
    template: Template = Template()


class WorkloadSpec(KubeStruct, frozen=True):
    """Everything that starts together."""

    pod_sets: tuple[PodSet, ...] = ()


class WorkloadStatus(KubeStruct, frozen=True):
    """Kueue's conditions of a workload."""

    conditions: tuple[Condition, ...] = ()


class Workload(KubeObject, frozen=True):
    """One job in a queue of Kueue."""

    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


WORKLOAD = Kind(Workload, "Workload", "workloads", "kueue.x-k8s.io", "v1beta2")
