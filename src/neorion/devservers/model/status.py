"""The `status` of a DevServer. Only the operator writes it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, field

from neorion.devservers.model.field_types import Text
from neorion.keel.kube import KubeStruct
from neorion.keel.kube.validation import keyed


class Phase(StrEnum):
    """Where a server is, in one word."""

    PENDING = "Pending"
    QUEUED = "Queued"
    STARTING = "Starting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    STOPPED = "Stopped"
    EXPIRED = "Expired"
    FAILED = "Failed"
    TERMINATING = "Terminating"


class ConditionType(StrEnum):
    """The steps to a server one can use, and what threatens it."""

    FLAVOR = "FlavorAccepted"
    VOLUME = "VolumeReady"
    QUOTA = "QuotaReserved"
    SCHEDULED = "PodScheduled"
    IMAGE = "ImagePulled"
    READY = "Ready"
    SSH = "SSHReady"
    IDLE = "Idle"
    EXPIRING = "ExpiringSoon"
    RESIZING = "Resizing"
    CONTESTED = "Contested"


class StopReason(StrEnum):
    """Reason why the server stopped."""

    ASKED = "Asked"
    EXPIRED = "Expired"
    IDLE = "Idle"
    SCHEDULE = "Schedule"
    PREEMPTED = "Preempted"
    INTERRUPTED = "Interrupted"


class Condition(KubeStruct, frozen=True, kw_only=True):
    """One step, with a stable reason for programs and a sentence for people."""

    type: ConditionType
    status: Annotated[str, Meta(pattern=r"^(True|False|Unknown)$")]
    reason: Annotated[str, Meta(max_length=1024)]
    message: Annotated[str, Meta(max_length=4096)] = ""
    last_transition_time: datetime | None = None


class Activity(KubeStruct, frozen=True, kw_only=True):
    """Last use of the server, and the source that showed it."""

    last_time: datetime
    source: Text


class Deadline(KubeStruct, frozen=True, kw_only=True):
    """When the server will stop by itself, and why."""

    time: datetime
    reason: StopReason


class AppliedFlavor(KubeStruct, frozen=True, kw_only=True):
    """The flavor the server runs on, and the one it came from while that can still be undone."""

    applied: Text
    previous: Text | None = None
    changed: datetime | None = None


class Cost(KubeStruct, frozen=True, kw_only=True):
    """Seconds and their cost up to `asOf`. Readers add the time since then.

    `running` says at which of the two rates: a server runs while it has a machine, and not while it waits for one.
    """

    as_of: datetime
    running: bool = False
    running_seconds: int = 0
    stopped_seconds: int = 0
    amount: Text = "0"
    currency: Text = "USD"
    per_hour: Text = "0"
    stopped_per_hour: Text = "0"


class QueueStatus(KubeStruct, frozen=True, kw_only=True):
    """Queue of a server, and its place among those that wait for the same quota.

    `holders` are servers and jobs that have the quota, as NAMESPACE/NAME, for the first of those that wait.
    """

    name: Text
    cluster_queue: Text | None = None
    place: int | None = None
    waiting: int | None = None
    holders: Annotated[tuple[Text, ...], Meta(max_length=8)] = ()


class Rank(KubeStruct, frozen=True, kw_only=True):
    """One machine of a distributed server."""

    name: Text
    node: Text | None = None
    ready: bool = False


class DevServerStatus(KubeStruct, frozen=True, kw_only=True):
    """Observed state of a development server."""

    phase: Phase | None = None
    ready: bool = False
    message: Text | None = None
    observed_generation: int = 0
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=16), keyed("type")] = ()
    pod_names: Annotated[tuple[Text, ...], Meta(max_length=4096)] = ()
    ranks: Annotated[tuple[Rank, ...], Meta(max_length=4096)] = ()
    service_name: Text | None = None
    ssh_endpoint: Text | None = None
    ssh_host_key: Text | None = None
    urls: Annotated[dict[str, Text], Meta(max_length=32)] = field(default_factory=dict[str, str])
    running_since: datetime | None = None
    start_time: datetime | None = None
    stopped_at: datetime | None = None
    stop_reason: StopReason | None = None
    delete_after: datetime | None = None
    activity: Activity | None = None
    deadline: Deadline | None = None
    last_oom: datetime | None = field(default=None, name="lastOOM")
    warned: Annotated[tuple[Text, ...], Meta(max_length=16)] = ()
    flavor: AppliedFlavor | None = None
    cost: Cost | None = None
    queue: QueueStatus | None = None
