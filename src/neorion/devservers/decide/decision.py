"""Input and output of decisions about a server."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from neorion.devservers.decide.flavor_change import ClusterFacts
from neorion.devservers.decide.idle_detection import ActivitySnapshot
from neorion.devservers.decide.manifests import Manifest, OwnerIdentity
from neorion.devservers.decide.names import rank_home_name, rank_name
from neorion.devservers.decide.progress import progress_of
from neorion.devservers.decide.quota import QueueEntry, is_admitted, on_assigned_nodes
from neorion.devservers.decide.resize import ResizeMode, change
from neorion.devservers.model import (
    GROUP,
    Alert,
    DevServerFlavorSpec,
    DevServerStatus,
    Distributed,
    StopReason,
)
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject, ServerDeployment
from neorion.keel.kube.core import PersistentVolumeClaim, Pod
from neorion.keel.kube.core.pods import ResourceRequirements

# Keeps the object until its home is marked with the day it goes: nothing else would remember.
FINALIZER = f"{GROUP}/home"


@dataclass(frozen=True)
class Observed:
    """One server and everything that belongs to it, at one moment. What follows from it is worked out once, when first asked for."""

    server: DevServerObject
    flavor: DevServerFlavor | None = None
    # Of a distributed server, the home of the first rank, or the one that all share.
    home: PersistentVolumeClaim | None = None
    # The Deployment, or the StatefulSet of a distributed server.
    body: ServerDeployment | None = None
    pods: tuple[Pod, ...] = ()
    look: ActivitySnapshot | None = None
    # Servers of the same user that come before it, where its flavor is rationed.
    ahead: int = 0
    # Looked up only when a decision depends on it.
    around: ClusterFacts | None = None
    # What the cluster said when something that the server needs could not be written.
    refused: str = ""
    # What is said of an object of the server that another writer changes again and again.
    contested: str = ""
    # The keys that all servers of its user accept, as lines of `authorized_keys`.
    user_keys: str = ""
    # The flavor that its status tells, where it asks for another.
    standing: DevServerFlavor | None = None
    # None where Kueue does not count its machines.
    quota: QueueEntry | None = None
    # Every home that was made for a server of this name.
    kept_homes: tuple[PersistentVolumeClaim, ...] = ()

    @cached_property
    def identity(self) -> OwnerIdentity:
        meta = self.server.meta
        return OwnerIdentity(meta.name, meta.namespace, meta.uid)

    @property
    def distributed(self) -> Distributed | None:
        return self.server.spec.distributed

    @cached_property
    def machine(self) -> DevServerFlavorSpec | None:
        """The flavor, on the nodes that Kueue chose."""
        return on_assigned_nodes(self.flavor.spec, self.quota) if self.flavor is not None else None

    @property
    def nodes(self) -> int:
        """Number of Pods of the whole server."""
        return self.distributed.nodes if self.distributed is not None else 1

    @cached_property
    def pod(self) -> Pod | None:
        """The pod that counts: the newest that is not on its way out, or the slowest rank of a distributed server."""
        staying = [pod for pod in self.pods if pod.meta.deleted is None]
        if self.distributed is not None:
            return min(staying, key=lambda pod: (progress_of(pod), pod.meta.name), default=None)
        return max(staying, key=lambda pod: (pod.meta.created or "", pod.meta.name), default=None)

    @cached_property
    def working_pods(self) -> tuple[Pod, ...]:
        """Pods in which users work: one, or that of each rank."""
        if self.distributed is not None:
            return tuple(pod for pod in self.pods_by_rank if pod is not None)
        return (self.pod,) if self.pod is not None else ()

    @property
    def probed(self) -> str:
        """Names of the Pods whose use is measured together."""
        return ",".join(pod.meta.name for pod in self.working_pods)

    @property
    def rank_names(self) -> tuple[str, ...]:
        return tuple(rank_name(self.server.meta.name, rank) for rank in range(self.nodes))

    @cached_property
    def pods_by_rank(self) -> tuple[Pod | None, ...]:
        """Pod of each rank, without those that are being deleted."""
        staying = {pod.meta.name: pod for pod in self.pods if pod.meta.deleted is None}
        return tuple(staying.get(name) for name in self.rank_names)

    @cached_property
    def is_whole(self) -> bool:
        """Return whether the server has all its Pods."""
        return len(self.working_pods) == self.nodes

    @cached_property
    def homes(self) -> tuple[PersistentVolumeClaim | None, ...]:
        """The home of each rank, or the one there is as often as there are machines."""
        if self.distributed is None or not self.distributed.has_rank_homes:
            return (self.home,) * self.nodes
        known = {home.meta.name: home for home in self.kept_homes}
        name = self.server.meta.name
        return tuple(known.get(rank_home_name(name, rank)) for rank in range(self.nodes))

    @property
    def waits_to_move(self) -> bool:
        """Return whether it runs on the quota of earlier machines until it is admitted for others."""
        quota = self.quota
        return quota is not None and not is_admitted(quota) and quota.earlier is not None and bool(self.pods)

    @cached_property
    def inherited(self) -> bool:
        """Reports whether a deleted server of the same name has left a pod that still exists."""
        since = self.server.meta.created or ""
        return any(pod.meta.deleted is None and (pod.meta.created or since) < since for pod in self.pods)

    @property
    def starts_on_quota(self) -> bool:
        """Return whether it gets Pods now, because its machines are admitted."""
        has_none = self.body is None or self.body.spec.replicas == 0
        return self.server.spec.running and has_none and self.quota is not None and is_admitted(self.quota)

    @property
    def is_drained(self) -> bool:
        """Return whether it has no Pods and gets none. Pods of a Deployment scaled down a moment ago may still come."""
        if self.pods or self.body is None:
            return not self.pods
        told = self.body.status
        scaled_down = self.body.spec.replicas == 0 and told.observed_generation >= self.body.meta.generation
        return scaled_down and told.replicas == 0

    @cached_property
    def stands(self) -> bool:
        """Reports whether the server has a pod, or gets one by its existing Deployment."""
        return self.pod is not None or (self.body is not None and self.body.spec.replicas != 0)

    @cached_property
    def change(self) -> ResizeMode:
        """Kind of change that brings the server to its flavor."""
        pods = self.working_pods
        if not pods or self.flavor is None or self.machine is None:
            return ResizeMode.NONE
        template = self.body.spec.template.spec.containers if self.body else ()
        image = None if self.server.spec.image else self.flavor.spec.image
        if template and image is not None and template[0].image != image:
            return ResizeMode.RECREATE
        applied, machine = template[0].resources if template else ResourceRequirements(), self.machine
        found = max((change(pod, machine, applied) for pod in pods), key=tuple(ResizeMode).index)
        # Quota is reserved for exact amounts: other amounts need another request.
        return found if self.quota is None or found is ResizeMode.NONE else ResizeMode.RECREATE


@dataclass(frozen=True, slots=True)
class StopServer:
    """Set `running: false`, and say why."""

    reason: StopReason


@dataclass(frozen=True, slots=True)
class StartServer:
    """Set `running: true` again."""


@dataclass(frozen=True, slots=True)
class RevertFlavor:
    """Set the flavor the server came from."""

    flavor: str


@dataclass(frozen=True, slots=True)
class DeleteServer:
    """Delete the server. Its home stays for its retention."""


Edit = StopServer | StartServer | RevertFlavor | DeleteServer


@dataclass(frozen=True, slots=True)
class EventNote:
    """Something its user should read, as an Event."""

    reason: str
    text: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Leaves no choice open.

    `objects` are applied as they stand. `resize` are the resources its running pods get without a restart. `halt` takes
    the pods away where the flavor is missing and no Deployment could be written. `release` lets the object go. `alert`
    is told once the status remembers that it was. `finished` are Workloads whose quota is given back, and `ready_workload`
    is one whose Pods have become ready.
    """

    status: DevServerStatus
    objects: tuple[Manifest, ...] = ()
    edit: Edit | None = None
    resize: Manifest | None = None
    halt: bool = False
    finished: tuple[str, ...] = ()
    ready_workload: str = ""
    release: bool = False
    notes: tuple[EventNote, ...] = ()
    alert: Alert | None = None
    wake: datetime | None = None
