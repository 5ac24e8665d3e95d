"""Pods, as schedulers, drains and dev servers read them. They are written as manifests."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class ResourceRequirements(KubeStruct, frozen=True):
    """What a container needs and may use at most, as quantities."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)


class Container(KubeStruct, frozen=True):
    """One container of a pod."""

    name: str
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class PersistentVolumeClaimSource(KubeStruct, frozen=True):
    """A volume that is a PersistentVolumeClaim."""

    claim_name: str


class Volume(KubeStruct, frozen=True):
    """A volume of a pod: `empty_dir` is there when its data dies with the pod."""

    name: str
    empty_dir: dict[str, object] | None = None
    claim: PersistentVolumeClaimSource | None = field(name="persistentVolumeClaim", default=None)


class Toleration(KubeStruct, frozen=True):
    """A taint that a pod can live with."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = field(name="tolerationSeconds", default=None)


class PodSchedulingGate(KubeStruct, frozen=True):
    """Somebody's reason to hold a pod back from scheduling."""

    name: str


class PodSpec(KubeStruct, frozen=True):
    """What is asked of a pod."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    service_account_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    restart_policy: str = ""
    host_network: bool = False
    grace_s: int | None = field(name="terminationGracePeriodSeconds", default=None)


class ContainerStateWaiting(KubeStruct, frozen=True):
    """Why a container is not running yet."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(KubeStruct, frozen=True):
    """Since when a container runs."""

    started: str | None = field(name="startedAt", default=None)


class ContainerStateTerminated(KubeStruct, frozen=True):
    """How a container ended."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started: str | None = field(name="startedAt", default=None)
    finished: str | None = field(name="finishedAt", default=None)


class ContainerState(KubeStruct, frozen=True):
    """One of three."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(KubeStruct, frozen=True):
    """What the kubelet reports of a container."""

    name: str
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    container_id: str = field(name="containerID", default="")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    # What it has now. Kubelets that cannot change it under a running container do not say.
    resources: ResourceRequirements | None = None


class PodStatus(KubeStruct, frozen=True):
    """What the kubelet and the scheduler report of a pod."""

    phase: str = ""
    # Which of the pod's generations the kubelet speaks of; 0 where it does not say.
    observed_generation: int = 0
    reason: str = ""
    message: str = ""
    pod_ip: str = field(name="podIP", default="")
    host_ip: str = field(name="hostIP", default="")
    started: str | None = field(name="startTime", default=None)
    conditions: tuple[Condition, ...] = ()
    containers: tuple[ContainerStatus, ...] = field(name="containerStatuses", default=())
    init_containers: tuple[ContainerStatus, ...] = field(name="initContainerStatuses", default=())


class Pod(KubeObject, frozen=True):
    """Containers that live and die together on one node."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


POD = Kind(Pod, "Pod", "pods")
