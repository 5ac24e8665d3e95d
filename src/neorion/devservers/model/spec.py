"""The `spec` of a DevServer.

Types and rules contain every check that the API server can make, so that `kubectl apply` of an invalid server is refused
with a sentence.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from msgspec import Meta, field

from neorion.devservers.model.field_types import DottedName, Moment, Name, Size, Span, Text
from neorion.keel.kube import KubeStruct
from neorion.keel.kube.validation import Rule, keyed, rules

# The names of variables in ncclSettings. torchrun sets RANK, WORLD_SIZE and their like itself.
_COMMUNICATION_VARIABLE: Final = "^(NCCL|TORCH|GLOO|OFI|FI|UCX|OMPI|PRTE|RDMAV|IBV)_[A-Z0-9_]+$"


class Mode(StrEnum):
    """One machine, or several that train together."""

    STANDALONE = "standalone"
    DISTRIBUTED = "distributed"


class Backend(StrEnum):
    """Communication backend of PyTorch."""

    NCCL = "nccl"
    GLOO = "gloo"
    MPI = "mpi"


class OnExpire(StrEnum):
    """Action at the deadline. Both keep the home for its retention."""

    STOP = "Stop"
    DELETE = "Delete"


class RankHomes(StrEnum):
    """Home directories of a distributed server."""

    PER_RANK = "PerRank"
    SHARED = "Shared"


class Distributed(KubeStruct, frozen=True, kw_only=True):
    """Number of processes that train together, and of the machines that run them.

    Each machine is a rank of the server. With `minNodes` torchrun is elastic: training continues on that many machines.
    """

    RULES: ClassVar[tuple[Rule, ...]] = (
        (
            "self.worldSize % (has(self.nprocsPerNode) ? self.nprocsPerNode : 1) == 0",
            "worldSize must be a multiple of nprocsPerNode, so that every node runs the same number of processes",
        ),
        (
            "!has(self.minNodes) || self.minNodes * (has(self.nprocsPerNode) ? self.nprocsPerNode : 1) <= self.worldSize",
            "minNodes cannot be larger than the number of nodes, which is worldSize divided by nprocsPerNode",
        ),
        (
            f"!has(self.ncclSettings) || self.ncclSettings.all(name, name.matches('{_COMMUNICATION_VARIABLE}'))",
            "ncclSettings holds variables of the communication libraries, such as NCCL_DEBUG or GLOO_SOCKET_IFNAME",
        ),
    )

    world_size: Annotated[int, Meta(ge=1, le=4096)]
    nprocs_per_node: Annotated[int, Meta(ge=1, le=64)] = 1
    min_nodes: Annotated[int, Meta(ge=1, le=4096)] | None = None
    backend: Backend = Backend.NCCL
    nccl_settings: Annotated[dict[str, Text], Meta(max_length=64)] = field(default_factory=dict[str, str])
    max_restarts: Annotated[int, Meta(ge=0, le=1000)] = 0
    port: Annotated[int, Meta(ge=29500, le=29510)] = 29500
    homes: Annotated[
        RankHomes,
        rules(("self == oldSelf", "distributed.homes cannot change; create another server")),
    ] = RankHomes.PER_RANK

    @property
    def nodes(self) -> int:
        return self.world_size // self.nprocs_per_node

    @property
    def has_rank_homes(self) -> bool:
        return self.homes is RankHomes.PER_RANK


class HomeVolume(KubeStruct, frozen=True, kw_only=True):
    """Where the home directory is kept, and how long after the server is gone."""

    storage_class: Annotated[
        DottedName | None,
        rules(("self == oldSelf", "home.storageClass cannot change: a volume cannot move between classes")),
    ] = None
    retention: Span = "7d"


class VolumeMount(KubeStruct, frozen=True, kw_only=True):
    """A claim of the user's own, mounted beside the home."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        (
            "!self.mountPath.matches('^/+(home/+dev|dev/+shm|opt/+devserver(/.*)?)?/*$') && !self.mountPath.contains('/..')",
            "/, /home/dev, /dev/shm and /opt/devserver are the server's own; mount the claim beside or below the home",
        ),
    )

    claim_name: DottedName
    mount_path: Annotated[str, Meta(max_length=256, pattern=r"^/[^:]*$")]
    read_only: bool = False


class Port(KubeStruct, frozen=True, kw_only=True):
    """A port of the server that gets a name in its Service."""

    name: Annotated[
        str,
        Meta(min_length=1, max_length=15, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        rules(
            (
                "self.matches('[a-z]') && !self.contains('--')",
                "the name of a port has a letter in it, and no two hyphens side by side",
            )
        ),
    ]
    port: Annotated[int, Meta(ge=1, le=65535)]


PublicKey = Annotated[
    str,
    Meta(max_length=4096),
    rules(
        (
            "self.matches('^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( .*)?$')",
            "write a public key as one line of an .pub file",
        )
    ),
]


class Ssh(KubeStruct, frozen=True, kw_only=True):
    """Public keys for logins."""

    public_keys: Annotated[tuple[PublicKey, ...], Meta(max_length=32)] = ()


class QueueRef(KubeStruct, frozen=True, kw_only=True):
    """The queue whose quota the server counts against."""

    name: Name
    priority_class: DottedName | None = None


Cron = Annotated[
    str,
    Meta(max_length=100),
    rules(
        (r"self.matches('^(\\S+ ){4}\\S+$')", "write five fields of cron, such as 0 9 * * MON-FRI"),
    ),
]


class Schedule(KubeStruct, frozen=True, kw_only=True):
    """Hours at which the server starts and stops by itself, in the five fields of cron."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        ("has(self.start) || has(self.stop)", "a schedule needs start, stop or both"),
    )

    start: Cron | None = None
    stop: Cron | None = None
    time_zone: Annotated[str, Meta(max_length=64, pattern=r"^[A-Za-z0-9_+/-]+$")] = "UTC"


class Lifecycle(KubeStruct, frozen=True, kw_only=True):
    """When the server stops by itself, who is told before, and what is left."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        (
            "!(has(self.timeToLive) && has(self.expirationTime))",
            "give timeToLive or expirationTime, not both: they are two ways to say one deadline",
        ),
    )

    idle_timeout: Annotated[int, Meta(ge=60, le=31_536_000)] = 3600
    auto_shutdown: bool = True
    expiration_time: Moment | None = None
    time_to_live: Span | None = None
    extended_until: Moment | None = None
    keep_until: Moment | None = None
    on_expire: OnExpire = OnExpire.STOP
    retention: Span = "7d"
    warnings: Annotated[tuple[Span, ...], Meta(max_length=10)] = ("30m", "15m", "5m")
    schedule: Schedule | None = None


class DevServerSpec(KubeStruct, frozen=True, kw_only=True):
    """Desired state of a development server."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        (
            "(self.mode == 'distributed') == has(self.distributed)",
            "distributed belongs to mode: distributed, and that mode needs it",
        ),
        (
            "!has(self.sharedVolumeClaimName) || !has(self.volumes) || !self.volumes.exists(one, one.mountPath == '/shared')",
            "/shared is where sharedVolumeClaimName is mounted; mount the other claim elsewhere",
        ),
        (
            "!self.enableSSH || !has(self.ports) || !self.ports.exists(one, one.name == 'ssh' || one.port == 22)",
            "port 22 and the name ssh are the server's own while enableSSH is true",
        ),
        (
            "!has(self.ports) || self.ports.all(one, self.ports.exists_one(other, other.port == one.port))",
            "each port is listed once, under one name",
        ),
    )

    flavor: DottedName
    owner: Annotated[
        Annotated[str, Meta(max_length=254)] | None,
        rules(("self == oldSelf", "owner cannot change; create a server of your own")),
    ] = None
    image: Annotated[str, Meta(min_length=1, max_length=512, pattern=r"^[^\s]+$")] | None = None
    mode: Annotated[Mode, rules(("self == oldSelf", "mode cannot change; create another server"))] = (
        Mode.STANDALONE
    )
    distributed: Distributed | None = None
    running: bool = True
    persistent_home_size: Annotated[
        Size,
        rules(
            (
                "quantity(self).compareTo(quantity(oldSelf)) >= 0",
                "persistentHomeSize cannot shrink: a volume only grows; create a server with a smaller home and copy",
            )
        ),
    ] = "100Gi"
    home: HomeVolume = HomeVolume()
    shared_volume_claim_name: DottedName | None = None
    volumes: Annotated[tuple[VolumeMount, ...], Meta(max_length=16), keyed("mountPath")] = ()
    ports: Annotated[tuple[Port, ...], Meta(max_length=32), keyed("name")] = ()
    enable_ssh: bool = field(default=True, name="enableSSH")
    ssh: Ssh | None = None
    queue: QueueRef | None = None
    lifecycle: Lifecycle = Lifecycle()
