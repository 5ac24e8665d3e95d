"""What is seen of a server, and what is to be done about it."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from neorion.devservers.decide.activity import ActivitySnapshot
from neorion.devservers.decide.flavor_change import ClusterFacts
from neorion.devservers.decide.manifests import Manifest, OwnerIdentity
from neorion.devservers.decide.resize import ResizeMode, change
from neorion.devservers.model import GROUP, Alert, DevServerStatus, StopReason
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
    home: PersistentVolumeClaim | None = None
    body: ServerDeployment | None = None
    pods: tuple[Pod, ...] = ()
    look: ActivitySnapshot | None = None
    # Servers of the same user that come before it, where its flavor is rationed.
    ahead: int = 0
    # Looked up only when a decision depends on it.
    around: ClusterFacts | None = None
    # What the cluster said when something that the server needs could not be written.
    refused: str = ""
    # The keys that all servers of its user accept, as lines of `authorized_keys`.
    user_keys: str = ""
    # The flavor that its status tells, where it asks for another.
    standing: DevServerFlavor | None = None

    @cached_property
    def identity(self) -> OwnerIdentity:
        meta = self.server.meta
        return OwnerIdentity(meta.name, meta.namespace, meta.uid)

    @cached_property
    def pod(self) -> Pod | None:
        """The pod that counts: the newest that is not on its way out."""
        staying = (pod for pod in self.pods if pod.meta.deleted is None)
        return max(staying, key=lambda pod: (pod.meta.created or "", pod.meta.name), default=None)

    @cached_property
    def inherited(self) -> bool:
        """Whether a deleted server of the same name has left a pod that nobody has taken away yet."""
        since = self.server.meta.created or ""
        return any(pod.meta.deleted is None and (pod.meta.created or since) < since for pod in self.pods)

    @cached_property
    def stands(self) -> bool:
        """Whether it has a pod, or gets one again by the Deployment there is."""
        return self.pod is not None or (self.body is not None and self.body.spec.replicas != 0)

    @cached_property
    def change(self) -> ResizeMode:
        """What bringing the server to its flavor takes."""
        pod = self.pod
        if pod is None or self.flavor is None:
            return ResizeMode.NONE
        template = self.body.spec.template.spec.containers if self.body else ()
        image = None if self.server.spec.image else self.flavor.spec.image
        if template and image is not None and template[0].image != image:
            return ResizeMode.RECREATE
        return change(pod, self.flavor.spec, template[0].resources if template else ResourceRequirements())


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

    `objects` are applied as they stand. `resize` are the resources its running pod gets without a restart. `halt` takes
    the pods away where the flavor is missing and no Deployment could be written. `release` lets the object go. `alert`
    is told once the status remembers that it was.
    """

    status: DevServerStatus
    objects: tuple[Manifest, ...] = ()
    edit: Edit | None = None
    resize: Manifest | None = None
    halt: bool = False
    release: bool = False
    notes: tuple[EventNote, ...] = ()
    alert: Alert | None = None
    wake: datetime | None = None
