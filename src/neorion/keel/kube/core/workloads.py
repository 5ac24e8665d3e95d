"""Kinds that create pods: Deployments, StatefulSets, DaemonSets, Jobs. They are written as manifests."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class WorkloadSpec(KubeStruct, frozen=True):
    """The desired number of pods."""

    replicas: int | None = None


class DeploymentStatus(KubeStruct, frozen=True):
    """The progress of a Deployment."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class Deployment(KubeObject, frozen=True):
    """Interchangeable pods."""

    spec: WorkloadSpec = WorkloadSpec()
    status: DeploymentStatus = DeploymentStatus()


class StatefulSetStatus(KubeStruct, frozen=True):
    """The progress of a StatefulSet."""

    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Condition, ...] = ()


class StatefulSet(KubeObject, frozen=True):
    """Pods with stable names and their own volumes."""

    spec: WorkloadSpec = WorkloadSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetStatus(KubeStruct, frozen=True):
    """The progress of a DaemonSet."""

    observed_generation: int = 0
    desired: int = field(name="desiredNumberScheduled", default=0)
    ready: int = field(name="numberReady", default=0)
    updated: int = field(name="updatedNumberScheduled", default=0)


class DaemonSet(KubeObject, frozen=True):
    """A pod on every node."""

    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(KubeStruct, frozen=True):
    """The desired state of a Job."""

    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False
    backoff_limit: int | None = None


class JobStatus(KubeStruct, frozen=True):
    """The progress of a Job."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    started: str | None = field(name="startTime", default=None)
    completed: str | None = field(name="completionTime", default=None)
    conditions: tuple[Condition, ...] = ()


class Job(KubeObject, frozen=True):
    """Pods that run until they complete."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


DEPLOYMENT = Kind(Deployment, "Deployment", "deployments", "apps")
STATEFUL_SET = Kind(StatefulSet, "StatefulSet", "statefulsets", "apps")
DAEMON_SET = Kind(DaemonSet, "DaemonSet", "daemonsets", "apps")
JOB = Kind(Job, "Job", "jobs", "batch")
