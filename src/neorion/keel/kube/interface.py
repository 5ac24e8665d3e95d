"""The port of the Kubernetes API. The HTTP client and the in-memory double both implement it."""

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
    """Selects objects with the API's selectors: `Selector(labels="app=web,env in (a, b)", fields="spec.nodeName=n1")`."""

    labels: str = ""
    fields: str = ""


ALL = Selector()


class ListResult(Struct, Generic[T], frozen=True, gc=False):
    """The objects at one version, and the version to watch from."""

    items: Sequence[T]
    version: str


class Added(Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="ADDED"):
    """An object that this watch delivers for the first time."""

    object: T


class Modified(Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="MODIFIED"):
    """An object has changed."""

    object: T


class Deleted(Struct, Generic[T], frozen=True, gc=False, tag_field="type", tag="DELETED"):
    """An object is gone, or no longer selected; `object` is its last state."""

    object: T


class Bookmark(Struct, frozen=True, gc=False):
    """Everything up to `version` was delivered, so a watch may resume there.

    `initial_done` marks the end of the objects that existed when a watch without `since` began.
    """

    version: str
    initial_done: bool = False


class UndecodableObject(Struct, frozen=True, gc=False):
    """An object that does not fit its kind's type has come, changed or gone.

    The watch goes on; reading `object` raises the error.
    """

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
    """The treatment of objects that the deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class DeleteOptions(Struct, frozen=True):
    """Options of a deletion. With `uid` or `version`, it happens only if the object still matches."""

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
    """The lines of a pod's log to read. `container` may be empty if the pod has only one."""

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
        """Watches changes after the version `since`.

        Without `since`, every object comes first as Added, then a Bookmark with `initial_done`.
        The iterator ends when the server ends the watch, as it does every few minutes: resume from the last version. If
        it ends before `initial_done`, the objects are not a complete list: start again. Raises ResourceExpired when the
        version is too old: start again without it. Raises Retry when the connection breaks.
        """
        ...

    async def create(self, kind: Kind[T], thing: T | Manifest) -> T:
        """Raises AlreadyExists if an object of that name exists."""
        ...

    async def apply(
        self, kind: Kind[T], thing: T | Manifest, manager: str, *, force: bool = False, subresource: str = ""
    ) -> T:
        """Server-side apply: the manager owns the given fields.

        Fields that the manager applied before and omits now are removed.
        A field that another manager owns with another value is a Conflict, unless `force` is set.
        """
        ...

    async def patch(
        self, kind: Kind[T], name: str, patch: Patch, namespace: str = "", subresource: str = ""
    ) -> T: ...

    async def replace(self, kind: Kind[T], thing: T | Manifest, subresource: str = "") -> T:
        """Replaces the whole object; a Conflict if its resourceVersion is not the newest."""
        ...

    async def delete(
        self, kind: Kind[T], name: str, namespace: str = "", how: DeleteOptions = DELETE
    ) -> None:
        """Returns when the deletion is accepted: finalizers may keep the object for a while."""
        ...

    async def evict(self, name: str, namespace: str, how: DeleteOptions = DELETE) -> None:
        """Deletes a pod unless a disruption budget forbids it now, which raises a Retry with `kube.disruption_budget`."""
        ...

    async def scale(self, kind: Kind[T], name: str, replicas: int, namespace: str = "") -> None: ...

    async def token(
        self,
        account: str,
        namespace: str,
        audiences: Sequence[str] = (),
        life: Duration = TOKEN_LIFE,
    ) -> ServiceAccountToken:
        """Issues a token of a service account; the server may grant a shorter `life`, but never less than 10 minutes."""
        ...

    def logs(
        self, name: str, namespace: str, request: PodLogOptions = ALL_LINES
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Yields the log of a pod's container as it arrives, in chunks that do not end at line ends."""
        ...
