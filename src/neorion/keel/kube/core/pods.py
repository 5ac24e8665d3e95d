"""Pods, with the fields that schedulers, drains and dev servers read. They are written as manifests."""

from msgspec import field

from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import Condition, KubeObject, KubeStruct


class ResourceRequirements(KubeStruct, frozen=True):
    """The requests and limits of a container, as quantities."""

    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)


class Container(KubeStruct, frozen=True):
    """One container of a pod."""

    name: str
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class PersistentVolumeClaimSource(KubeStruct, frozen=True):
    """A volume source that is a PersistentVolumeClaim."""

    claim_name: str


class Volume(KubeStruct, frozen=True):
    """A volume of a pod. `empty_dir` is set if its data is deleted with the pod."""

    name: str
    empty_dir: dict[str, object] | None = None
    claim: PersistentVolumeClaimSource | None = field(name="persistentVolumeClaim", default=None)


class Toleration(KubeStruct, frozen=True):
    """A toleration: the taint that a pod accepts."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = field(name="tolerationSeconds", default=None)


class PodSchedulingGate(KubeStruct, frozen=True):
    """A reason to keep a pod from being scheduled, set by a controller."""

    name: str


class PodSpec(KubeStruct, frozen=True):
    """The desired state of a pod."""

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
    """The reason why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerStateRunning(KubeStruct, frozen=True):
    """The start time of a running container."""

    started: str | None = field(name="startedAt", default=None)


class ContainerStateTerminated(KubeStruct, frozen=True):
    """The exit of a container."""

    exit_code: int
    signal: int = 0
    reason: str = ""
    message: str = ""
    started: str | None = field(name="startedAt", default=None)
    finished: str | None = field(name="finishedAt", default=None)


class ContainerState(KubeStruct, frozen=True):
    """The state of a container: one of the three fields is set."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(KubeStruct, frozen=True):
    """The kubelet's report on a container."""

    name: str
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    container_id: str = field(name="containerID", default="")
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    # The current resources. Kubelets without in-place resize omit them.
    resources: ResourceRequirements | None = None


class PodStatus(KubeStruct, frozen=True):
    """The state of a pod, from the kubelet and the scheduler."""

    phase: str = ""
    # The generation of the pod that the kubelet has seen; 0 if it does not report one.
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
    """Containers that start and stop together on one node."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


POD = Kind(Pod, "Pod", "pods")
