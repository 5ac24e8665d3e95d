"""A mirror of what the API server holds of one kind: read at once, asked by index, and heard of at every change."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, Generic, Protocol, TypeVar

import anyio

from neorion.keel.kube.control.compressed_store import CompressedStore
from neorion.keel.kube.control.queue import Priority
from neorion.keel.kube.interface import ALL, Selector, UndecodableObject
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.labels import matcher
from neorion.keel.kube.objects import KubeObject, ObjectKey, ObjectMeta

T = TypeVar("T", bound=KubeObject)
T_contra = TypeVar("T_contra", bound=KubeObject, contravariant=True)
V = TypeVar("V", bound=Hashable)

_NOWHERE: Final[dict[ObjectKey, None]] = {}
_ALL_READABLE: Final[Mapping[ObjectKey, UndecodableObject]] = {}


class EventHandler(Protocol[T_contra]):
    """Is told of every change: the object before and after it, None where there is none, and how urgent it is."""

    def __call__(self, before: T_contra | None, after: T_contra | None, lane: Priority, /) -> None: ...


class Index(Generic[T, V]):
    """Objects by what a function says of them: their owners, a label, the node they run on."""

    def __init__(self, informer: "Informer[T]", values: Callable[[T], Iterable[V]]) -> None:
        self._informer = informer
        self._values = values
        # Keys in the order of their coming: whoever walks them walks the same way in every run.
        self._keys: dict[V, dict[ObjectKey, None]] = {}
        for thing in informer:
            self.replace(thing.meta.key, None, thing)

    def get(self, value: V) -> list[T]:
        found = map(self._informer.get, self._keys.get(value, _NOWHERE))
        return [thing for thing in found if thing is not None]

    def keys(self, value: V) -> list[ObjectKey]:
        """Where only the names are asked for: a packed mirror has nothing to unpack for them."""
        return list(self._keys.get(value, _NOWHERE))

    def replace(self, key: ObjectKey, before: T | None, after: T | None) -> None:
        for value in () if before is None else self._values(before):
            # A function may say a thing twice, as of an object that names one owner twice.
            keys = self._keys.get(value, {})
            keys.pop(key, None)
            if not keys:
                self._keys.pop(value, None)
        for value in () if after is None else self._values(after):
            self._keys.setdefault(value, {})[key] = None


class Informer(Generic[T]):
    """Objects are frozen and shared by everybody who asks; nobody copies, nobody changes them.

    Two ways lead in: what a `Feed` hears from the server, and `observe` for what this process has just written. Versions
    decide between the two: nothing ever replaces what is newer than itself. A `packed` mirror trades time for memory: it
    is for thousands of objects that are each asked for when they change, and seldom all together. One with `gaps` is
    complete although objects are `unreadable` that it never knew: for those who do not take them for gone.
    """

    def __init__(
        self,
        kind: Kind[T],
        namespace: str = "",
        select: Selector = ALL,
        *,
        packed: bool = False,
        gaps: bool = False,
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.select = select
        self._selected = matcher(select.labels)
        self._packed = packed
        self.gaps = gaps
        self._objects = self.shelf()
        self._indexes: list[Index[T, Any]] = []
        self._listeners: list[EventHandler[T]] = []
        self._synced = anyio.Event()
        # Why some objects cannot be read: of these the mirror shows what it last knew of them, if it ever knew them.
        self.unreadable: dict[ObjectKey, str] = {}
        # Of everything up to this version the server has told us.
        self._heard = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def keys(self) -> list[ObjectKey]:
        """Of all that is there now. Whoever goes through them slowly may find one gone."""
        return list(self._objects)

    def shelf(self) -> MutableMapping[ObjectKey, T]:
        """An empty one, such as this mirror keeps its objects on."""
        return CompressedStore(self.kind.type) if self._packed else {}

    def index(self, values: Callable[[T], Iterable[V]]) -> Index[T, V]:
        """Kept up to date from now on; `index(by_owner).get(uid)` costs as much as there are answers."""
        index = Index(self, values)
        self._indexes.append(index)
        return index

    def listen(self, listener: EventHandler[T]) -> None:
        """Calls it at every change from now on, in the order of changes. It must not wait and not fail."""
        self._listeners.append(listener)

    @property
    def synced(self) -> bool:
        """Whether everything that was there at the beginning has been heard of."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def observe(self, written: T) -> None:
        """Takes in what the server answered to a write of ours: who writes reads it at once, not after the watch has caught up.

        Ignored if the watch is already past it: the object may have been changed or deleted since.
        """
        if self.select.fields or (self.namespace and written.meta.namespace != self.namespace):
            return
        before = self._objects.get(written.meta.key)
        known = max(self._heard, version_of(before) if before is not None else 0)
        if version_of(written) > known and self._selected(written.meta.labels):
            self._change(written.meta.key, before, written, Priority.URGENT)

    def hear(self, thing: T) -> None:
        """An event of the watch. What we wrote ourselves may be newer than what is told here, and then stands."""
        key = thing.meta.key
        before = self._objects.get(key)
        self._heard = version_of(thing)
        if before is None or version_of(before) < self._heard:
            self._change(key, before, thing, Priority.URGENT)

    def hear_gone(self, meta: ObjectMeta) -> None:
        """The end of an object, in the metadata of its last state."""
        before = self._objects.get(meta.key)
        self._heard = int(meta.resource_version)
        self.unreadable.pop(meta.key, None)
        if before is not None and version_of(before) <= self._heard:
            self._change(meta.key, before, None, Priority.URGENT)

    def hear_unreadable(self, meta: ObjectMeta, why: str) -> None:
        """Nothing is known of a change but that there was one. Another object of the name is the end of the one before."""
        if not self._is_known(meta):
            self.hear_gone(meta)
        self._heard = int(meta.resource_version)
        self.unreadable[meta.key] = why

    def hear_all(
        self,
        things: MutableMapping[ObjectKey, T],
        version: int,
        unreadable: Mapping[ObjectKey, UndecodableObject] = _ALL_READABLE,
    ) -> None:
        """A whole list, which is the mirror's from now on. What is not in it is gone, unless it was written after the list was made.

        A list older than what we have heard comes from a server that was restored from a backup: it is the truth now.
        """
        restored = version < self._heard
        self._heard = version
        for key, event in unreadable.items():
            if self._is_known(event.meta):
                things[key] = self._objects[key]
        if self._objects:
            self._compare(things, version, restored=restored)
        else:
            # The first list becomes the mirror as it is: taking over each of thousands would cost as much again.
            self._objects = things
            for key, thing in things.items():
                self._tell(key, None, thing, Priority.PATIENT)
        self.unreadable = {key: event.error.sentence for key, event in unreadable.items()}
        self._synced.set()

    def _compare(self, things: MutableMapping[ObjectKey, T], version: int, *, restored: bool) -> None:
        for key, before in list(self._objects.items()):
            if key not in things and (restored or version_of(before) <= version):
                self._change(key, before, None, Priority.PATIENT)
        for key in list(things):
            before, thing = self._objects.get(key), things.pop(key)
            if before is None or version_of(before) < version_of(thing) or (restored and before != thing):
                self._change(key, before, thing, Priority.PATIENT)

    def hear_version(self, version: int) -> None:
        self._heard = version

    def _is_known(self, meta: ObjectMeta) -> bool:
        known = self._objects.get(meta.key)
        return known is not None and known.meta.uid == meta.uid

    def _change(self, key: ObjectKey, before: T | None, after: T | None, lane: Priority) -> None:
        self.unreadable.pop(key, None)
        if after is None:
            del self._objects[key]
        else:
            self._objects[key] = after
        self._tell(key, before, after, lane)

    def _tell(self, key: ObjectKey, before: T | None, after: T | None, lane: Priority) -> None:
        for index in self._indexes:
            index.replace(key, before, after)
        for listener in self._listeners:
            listener(before, after, lane)


def version_of(thing: KubeObject) -> int:
    """Versions of one kind can be compared since Kubernetes 1.35 says so, and could be before."""
    return int(thing.meta.resource_version or 0)


def by_owner(thing: KubeObject) -> Iterable[str]:
    """An index by the uid of each owner."""
    return (owner.uid for owner in thing.meta.owners)


def by_label(name: str) -> Callable[[KubeObject], Iterable[str]]:
    """An index by the value of one label."""
    return lambda thing: (thing.meta.labels[name],) if name in thing.meta.labels else ()
