"""The sections that say where the cluster lives and how it behaves; scale groups have a module of their own."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from neorion.keel.base import Duration, Quantity
from neorion.keel.config import DurationField, Model, NameField, Problem, QuantityField, SecretValue

ARMS = ("coreweave", "kubernetes", "local")
# Workers renew their leases several times within it, over a network that may be slow.
WORKER_TIMEOUT_MIN = Duration.of(seconds=2)

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
MountText = Annotated[str, Field(pattern=r"^/[^:]*:/[^:]*(:r[ow])?$")]
# One segment of a job's name: users own the jobs below theirs.
User = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")]


class RuntimeName(StrEnum):
    """Runtime that starts tasks."""

    PROCESS = "process"
    CONTAINERD = "containerd"
    DOCKER = "docker"
    KUBERNETES = "kubernetes"


# Runtimes with containers of the worker's own machine.
ON_MACHINE = (RuntimeName.CONTAINERD, RuntimeName.DOCKER)


class NodePools(StrEnum):
    """One NodePool for each slice, or one for all slices of a scale group."""

    PER_SLICE = "per_slice"
    PER_GROUP = "per_group"


def arms(section: Model) -> tuple[str, ...]:
    """The platforms that a section has a key for."""
    return tuple(name for name in ARMS if getattr(section, name) is not None)


def one_arm(section: Model) -> Iterator[Problem]:
    chosen = arms(section)
    if not chosen:
        hint = 'Write "local: {}" for this machine, or a "kubernetes" or "coreweave" section.'
        yield Problem((), 'One of "coreweave", "kubernetes" and "local" is needed here.', hint)
    elif len(chosen) > 1:
        sentence = f"Only one of {' and '.join(map(_quoted, chosen))} may stand here."
        yield Problem((), sentence, "Remove the other.")


def _quoted(name: str) -> str:
    return f'"{name}"'


def never_zero(section: Model, *names: str) -> Iterator[Problem]:
    for name in names:
        if not getattr(section, name):
            yield Problem((name,), f'"{name}" must be longer than nothing.')


class InCluster(Model):
    """Settings of worker Pods that are the same on every Kubernetes cluster."""

    namespace: NameField = Field(default="iris", description="The namespace of the worker Pods.")
    kubeconfig_path: str = Field(
        default="",
        description="For a controller outside of the cluster; inside, its service account is used.",
    )
    image_pull_secrets: list[NameField] = Field(
        default=["iris-image-pull"],
        description="Secrets for pulling the worker's image; one that does not exist is ignored.",
    )
    stop_grace: DurationField = Field(
        default=Duration.of(seconds=30),
        description="How long tasks may take to end when their worker Pod ends.",
    )

    def problems(self) -> Iterable[Problem]:
        return never_zero(self, "stop_grace")


class KubernetesPlatformModel(InCluster):
    """Any Kubernetes cluster: slices are worker Pods, on nodes that are there or that an autoscaler adds."""

    host_network: bool = Field(default=False, description="Gives worker Pods the network of their nodes.")


class CoreweavePlatformModel(InCluster):
    """CoreWeave: slices are NodePools with a worker Pod on each node."""

    region: str = Field(min_length=1, description="Where the Kubernetes cluster runs, as in `LGA1`.")
    host_network: bool = Field(default=True, description="Gives worker Pods the network of their nodes.")
    node_pools: NodePools = Field(
        default=NodePools.PER_SLICE,
        description="One NodePool `per_slice`, or one `per_group` that grows and shrinks.",
    )
    capacity_patience: DurationField = Field(
        default=Duration.of(minutes=10),
        description="How long a NodePool may wait in CoreWeave's queue before another group is tried.",
    )


class LocalPlatformModel(Model):
    """Slices that are worker processes of this machine."""

    stop_grace: DurationField = Field(
        default=Duration.of(seconds=10),
        description="How long workers may take to end before they are killed.",
    )


class PlatformModel(Model):
    """Where slices come from."""

    label_prefix: NameField = Field(
        default="iris",
        description="Begins the labels on everything this installation makes, as in `iris-managed`.",
    )
    coreweave: CoreweavePlatformModel | None = Field(default=None, description="Slices on CoreWeave.")
    kubernetes: KubernetesPlatformModel | None = Field(
        default=None, description="Slices on any Kubernetes cluster."
    )
    local: LocalPlatformModel | None = Field(default=None, description="Slices on this machine.")

    def problems(self) -> Iterable[Problem]:
        return one_arm(self)

    @property
    def in_cluster(self) -> KubernetesPlatformModel | CoreweavePlatformModel | None:
        """The cluster of the worker Pods, if they are Pods."""
        return self.coreweave or self.kubernetes


class ServiceController(Model):
    """A controller that runs as a Deployment behind a Service."""

    port: int = Field(default=10000, ge=1, le=65535, description="The port of the Service.")
    service_name: NameField = Field(
        default="iris-controller-svc", description="The Service by which workers find the controller."
    )
    docker_image: str = Field(
        default="ghcr.io/marin-community/iris-controller:latest",
        min_length=1,
        description="The controller's image, for `iris cluster up`.",
    )
    instance_type: str = Field(
        default="cd-gp-i64-erapids",
        min_length=1,
        description="The controller's own machine on CoreWeave, for `iris cluster up`.",
    )
    replicas: Literal[1, 2] = Field(
        default=1,
        description="With 2 one controller leads and one stands by. They need `storage.database`.",
    )
    storage_class: str = Field(
        default="",
        description="The class of the controller's volume. Two controllers share a volume that many nodes may write.",
    )


class LocalController(Model):
    """A controller that runs on this machine."""

    host: str = Field(default="127.0.0.1", min_length=1, description="The address it listens on.")
    port: int = Field(
        default=10000, ge=0, le=65535, description="The port it listens on; 0 takes any that is free."
    )


class Controller(Model):
    """Where the controller is found."""

    coreweave: ServiceController | None = Field(
        default=None, description="A controller inside of the cluster, on CoreWeave."
    )
    kubernetes: ServiceController | None = Field(
        default=None, description="A controller inside of the cluster."
    )
    local: LocalController | None = Field(default=None, description="A controller on this machine.")
    worker_timeout: DurationField = Field(
        default=Duration.of(seconds=60), description="A worker silent for so long has lost its tasks."
    )

    def problems(self) -> Iterable[Problem]:
        yield from one_arm(self)
        if self.worker_timeout < WORKER_TIMEOUT_MIN:
            sentence = f'"worker_timeout" is {self.worker_timeout}, less than {WORKER_TIMEOUT_MIN}.'
            yield Problem(("worker_timeout",), sentence, "A pause of the machine would cost tasks.")

    @property
    def service(self) -> ServiceController | None:
        """The Service of a controller inside of a cluster."""
        return self.coreweave or self.kubernetes


class Bootstrap(Model):
    """Worker program of a new machine."""

    docker_image: str = Field(default="", description="The worker's image; needed for worker Pods.")
    worker_port: int = Field(default=10001, ge=1, le=65535, description="The worker's own port.")
    runtime: RuntimeName | None = Field(
        default=None,
        description="How tasks start: `process`, `containerd`, `docker` or `kubernetes`. Without it `process`.",
    )
    cache_dir: str = Field(
        default="", description="Where workers keep blobs; without it below their own folder."
    )
    env_vars: dict[Variable, str] = Field(default_factory=dict, description="Variables of every worker.")
    task_image: str = Field(
        default="",
        description="The image of tasks in containers; it holds neorion. For Pods it is the worker's by default.",
    )
    task_mounts: list[MountText] = Field(
        default_factory=list,
        description="Folders of the machine that tasks in containers see, as in `/mnt/data:/data:ro`.",
    )
    runtime_socket: str = Field(
        default="",
        pattern="^(/.*)?$",
        description="The socket of containerd or Docker; without it the usual one.",
    )


class Timeouts(Model):
    """When a slice that does not come up has failed."""

    boot_timeout: DurationField = Field(
        default=Duration.of(seconds=300), description="How long machines may take to exist."
    )
    init_timeout: DurationField = Field(
        default=Duration.of(seconds=600), description="How long workers may then take to join."
    )

    def problems(self) -> Iterable[Problem]:
        return never_zero(self, "boot_timeout", "init_timeout")


class AutoscalerModel(Model):
    """Timing of the autoscaler."""

    evaluation_interval: DurationField = Field(
        default=Duration.of(seconds=10),
        description="How often demand is looked at, besides each time it changes.",
    )
    scale_up_delay: DurationField = Field(
        default=Duration.of(seconds=60), description="Demand that lasts so long brings a slice."
    )
    scale_down_delay: DurationField = Field(
        default=Duration.of(seconds=300), description="A slice idle for so long is given back."
    )
    startup_grace_period: DurationField = Field(
        default=Duration.of(minutes=30), description="A new slice is not given back for so long."
    )

    def problems(self) -> Iterable[Problem]:
        return never_zero(self, "evaluation_interval")


class Defaults(Model):
    """Settings of every scale group."""

    bootstrap: Bootstrap = Field(default_factory=Bootstrap, description="What a new machine starts.")
    timeouts: Timeouts = Field(default_factory=Timeouts, description="When a slice has failed.")
    autoscaler: AutoscalerModel = Field(
        default_factory=AutoscalerModel, description="How quickly groups follow demand."
    )


class Storage(Model):
    """Where the controller keeps what must survive."""

    state_dir: str = Field(
        default="~/.local/state/iris", min_length=1, description="The controller's folder; `~` is its home."
    )
    bundle_prefix: str = Field(
        default="",
        description="Where large blobs go: a folder, `s3://…` or `gs://…`; without it below `state_dir`.",
    )
    database: SecretValue | None = Field(
        default=None,
        description="`postgresql://…` instead of a SQLite file in `state_dir`; best a reference.",
    )


class Account(Model):
    """An account of a user."""

    token: SecretValue = Field(description="What they show; best a reference, as in `${file:alice.token}`.")
    admin: bool = Field(default=False, description="May act for others and manage workers.")


class Auth(Model):
    """Accounts of users. Without any, only the administrator may use the cluster.

    Tasks run as the user of their worker. One user's task can read what the worker and other tasks can read.
    """

    isolation: Literal["none"] | None = Field(
        default=None,
        description="Write none where users who trust each other share the cluster. Their tasks run as one user of the machine.",
    )
    users: dict[User, Account] = Field(default_factory=dict, description="Accounts by user name.")
    off_on_loopback: bool = Field(
        default=False,
        description="Users of this machine need no token and may do everything. Refused on any other address.",
    )

    def problems(self) -> Iterable[Problem]:
        if self.isolation is None and (
            ordinary := [user for user, one in self.users.items() if not one.admin]
        ):
            sentence = (
                f"Tasks of all users run as one user of the machine, so {ordinary[0]} could act as any other."
            )
            yield Problem(
                ("users",),
                sentence,
                "Write isolation: none if they trust each other, or give each a cluster.",
            )
        owners: dict[SecretValue, str] = {}
        for user, account in self.users.items():
            first = owners.setdefault(account.token, user)
            if not account.token.reveal():
                yield Problem(("users", user, "token"), f"The token of {user} is empty.")
            elif first != user:
                sentence = f"{user} has the same token as {first}."
                yield Problem(("users", user), sentence, "Give each user a token of their own.")


class UserLimit(Model):
    """Quota of one user, where it differs from the default."""

    running_tasks: int | None = Field(default=None, ge=0, description="Tasks at once; 0 is no limit.")
    cpu: QuantityField | None = Field(default=None, description="Cores at once; 0 is no limit.")
    memory: QuantityField | None = Field(default=None, description="Memory at once; 0 is no limit.")
    gpus: int | None = Field(default=None, ge=0, description="GPUs at once; 0 is no limit.")


class Limits(Model):
    """Quotas of users."""

    running_tasks: int = Field(default=0, ge=0, description="Tasks a user runs at once; 0 is no limit.")
    cpu: QuantityField = Field(default=Quantity(0), description="Cores a user has at once; 0 is no limit.")
    memory: QuantityField = Field(
        default=Quantity(0), description="Memory a user has at once; 0 is no limit."
    )
    gpus: int = Field(default=0, ge=0, description="GPUs a user has at once; 0 is no limit.")
    users: dict[User, UserLimit] = Field(
        default_factory=dict, description="Other limits, by user name; what is left out is as above."
    )


class Retention(Model):
    """Retention of ended jobs, results and logs."""

    jobs: DurationField = Field(
        default=Duration.of(hours=7 * 24),
        description="Ended jobs, their results and logs; of more than 10,000 the newest.",
    )
