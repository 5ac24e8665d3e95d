"""What a program may ask of a Kubernetes API. The client and the memory double both keep this promise."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Generic, Never, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from neorion.keel.base import Duration, Instant, Terminal
from neorion.keel.kube.kinds import Kind, Manifest
from neorion.keel.kube.objects import ObjectMeta

T = TypeVar("T")


class Selector(Struct, frozen=True):
    """Which objects, in the API's own words: `Selector(labels="app=web,env in (a, b)", fields="spec.nodeName=n1")`."""

    labels: str = ""
    fields: str = ""


ALL = Selector()


class ListResult(Struct, Generic[T], frozen=True, gc=False):
    """The objects at one moment, and the version to watch from."""

    items: Sequence[T]
    version: str


class Added(Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="ADDED"):
    """An object is there, seen for the first time by this watch."""

    object: T


class Modified(Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="MODIFIED"):
    """An object has changed."""

    object: T


class Deleted(Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="DELETED"):
    """An object is gone, or no longer selected; `object` is its last state."""

    object: T


class Bookmark(Struct, frozen=True, gc=False):
    """Everything up to `version` was told: a watch may resume there.

    `initial_done` marks the end of the objects that were there when a watch without `since` began.
    """

    version: str
    initial_done: bool = False


class UndecodableObject(Struct, frozen=True, gc=False):
    """An object has come, changed or gone that does not fit its kind's type. The watch goes on; who asks for the object gets the error."""

    meta: ObjectMeta
    error: Terminal
    gone: bool = False

    @property
    def object(self) -> Never:
        raise self.error


WatchEvent: TypeAlias = Added[T] | Modified[T] | Deleted[T] | UndecodableObject | Bookmark


class MergePatch(Struct, frozen=True):
    """JSON merge patch: fields replace fields, null removes, lists are replaced whole."""

    body: Manifest


class StrategicMergePatch(Struct, frozen=True):
    """Merges lists by their keys. Built-in kinds only."""

    body: Manifest


class JsonPatch(Struct, frozen=True):
    """Operations in order, all or none: `{"op": "test", "path": "/spec/x", "value": 1}`."""

    operations: Sequence[Manifest]


Patch: TypeAlias = MergePatch | StrategicMergePatch | JsonPatch


class DeletionPropagation(StrEnum):
    """What happens to the objects that the deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class DeleteOptions(Struct, frozen=True):
    """How to delete. With `uid` or `version`, only if the object is still that one."""

    propagation: DeletionPropagation = DeletionPropagation.BACKGROUND
    grace: Duration | None = None
    uid: str = ""
    version: str = ""


DELETE = DeleteOptions()


class ServiceAccountToken(Struct, frozen=True):
    """A service account's token. Its text is a secret and stays out of logs."""

    text: str
    expires: Instant

    def __repr__(self) -> str:
        return f"Token(expires={self.expires!r})"


class PodLogOptions(Struct, frozen=True):
    """Which lines of a pod's log. `container` may be left out where the pod has one."""

    container: str = ""
    follow: bool = False
    previous: bool = False
    tail_lines: int | None = None
    since: Duration | None = None
    timestamps: bool = False


ALL_LINES = PodLogOptions()
TOKEN_LIFE = Duration.of(hours=1)


class KubeApi(Protocol):
    """Objects by kind. Every call raises the families of `neorion.keel.base` with codes `kube.*`.

    A namespaced object needs its namespace; `list` and `watch` without one see all namespaces. Objects given to `create`,
    `apply` and `replace` name themselves in their metadata.
    """

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T: ...

    async def list(self, kind: Kind[T], namespace: str = "", select: Selector = ALL) -> ListResult[T]:
        """All objects of one moment, fetched page by page."""
        ...

    def watch(
        self, kind: Kind[T], namespace: str = "", select: Selector = ALL, since: str = ""
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent[T]]]:
        """Changes after the version `since`; without it, first every object as Added and a Bookmark with `initial_done`.

        The iterator ends when the server ends the watch, as it does every few minutes: resume from the last version.
        It may do so in the middle of the first objects too, and these are then no list: begin anew.
        It raises Expired when that version is too old, which is the time to begin anew, and Retry when the connection breaks.
        """
        ...

    async def create(self, kind: Kind[T], thing: T | Manifest) -> T:
        """Raises Exists when there is one of that name."""
        ...

    async def apply(
        self, kind: Kind[T], thing: T | Manifest, manager: str, *, force: bool = False, subresource: str = ""
    ) -> T:
        """Server-side apply: the fields given are the manager's; those it gave before and not now are removed.

        Fields owned by another manager with another value are a Conflict, unless `force` takes them over.
        """
        ...

    async def patch(
        self, kind: Kind[T], name: str, patch: Patch, namespace: str = "", subresource: str = ""
    ) -> T: ...

    async def replace(self, kind: Kind[T], thing: T | Manifest, subresource: str = "") -> T:
        """Writes the object whole; a Conflict if its resourceVersion is not the newest any more."""
        ...

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", how: DeleteOptions = DELETE
    ) -> None:
        """Returns when the deletion is accepted: finalizers may keep the object for a while."""
        ...

    async def evict(self, name: str, namespace: str, how: DeleteOptions = DELETE) -> None:
        """Deletes a pod unless a disruption budget forbids it now, which is a Retry with `kube.disruption_budget`."""
        ...

    async def scale(self, kind: Kind[T], name: str, replicas: int, namespace: str = "") -> None: ...

    async def token(
        self,
        account: str,
        namespace: str,
        audiences: Sequence[str] = (),
        life: Duration = TOKEN_LIFE,
    ) -> ServiceAccountToken:
        """A token of a service account; the server may grant a shorter life than asked for, never less than 10 minutes."""
        ...

    def logs(
        self, name: str, namespace: str, request: PodLogOptions = ALL_LINES
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The log of a pod's container as it comes, in pieces that do not respect lines."""
        ...
