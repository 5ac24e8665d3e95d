"""An informer: an in-memory copy of all objects of one kind, with indexes and change handlers."""

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
    """Handles a change: the object before and after it, None where it does not exist, and the priority."""

    def __call__(self, before: T_contra | None, after: T_contra | None, lane: Priority, /) -> None: ...


class Index(Generic[T, V]):
    """Objects by values that a function derives from them: their owners, a label, their node."""

    def __init__(self, informer: "Informer[T]", values: Callable[[T], Iterable[V]]) -> None:
        self._informer = informer
        self._values = values
        # Keys in the order of insertion, so that every run iterates in the same order.
        self._keys: dict[V, dict[ObjectKey, None]] = {}
        for thing in informer:
            self.replace(thing.meta.key, None, thing)

    def get(self, value: V) -> list[T]:
        found = map(self._informer.get, self._keys.get(value, _NOWHERE))
        return [thing for thing in found if thing is not None]

    def keys(self, value: V) -> list[ObjectKey]:
        """The keys only, without decompressing the objects of a packed informer."""
        return list(self._keys.get(value, _NOWHERE))

    def replace(self, key: ObjectKey, before: T | None, after: T | None) -> None:
        for value in () if before is None else self._values(before):
            # A function may return a value twice, as for an object that lists one owner twice.
            keys = self._keys.get(value, {})
            keys.pop(key, None)
            if not keys:
                self._keys.pop(value, None)
        for value in () if after is None else self._values(after):
            self._keys.setdefault(value, {})[key] = None


class Informer(Generic[T]):
    """The objects of one kind in memory. They are immutable and shared by all readers.

    Updates come from the watch of a `Reflector`, and from `observe` for writes of this process. The higher version
    wins, so an older state never replaces a newer one. A `packed` informer trades time for memory: for thousands of
    objects that are read one by one after a change. One with `gaps` counts as complete although objects are
    `unreadable` that it never had: for readers that do not take those for deleted.
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
        self._objects = self.new_store()
        self._indexes: list[Index[T, Any]] = []
        self._listeners: list[EventHandler[T]] = []
        self._synced = anyio.Event()
        # Why some objects cannot be decoded. The informer keeps the last state that it could decode, if any.
        self.unreadable: dict[ObjectKey, str] = {}
        # The version up to which the watch has delivered everything.
        self._version = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, key: ObjectKey) -> T | None:
        return self._objects.get(key)

    def keys(self) -> list[ObjectKey]:
        """The keys of all present objects. A caller that iterates slowly may find an object gone."""
        return list(self._objects)

    def new_store(self) -> MutableMapping[ObjectKey, T]:
        """Creates an empty store of the kind that this informer uses."""
        return CompressedStore(self.kind.type) if self._packed else {}

    def index(self, values: Callable[[T], Iterable[V]]) -> Index[T, V]:
        """Adds an index that is kept up to date. `index(by_owner).get(uid)` costs as much as it returns."""
        index = Index(self, values)
        self._indexes.append(index)
        return index

    def listen(self, listener: EventHandler[T]) -> None:
        """Calls `listener` at every later change, in the order of changes. It must not wait and not fail."""
        self._listeners.append(listener)

    @property
    def synced(self) -> bool:
        """True if all objects that existed at the beginning have been received."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def observe(self, written: T) -> None:
        """Takes the server's response to a write of this process, so that a read sees it before the watch delivers it.

        Ignored if the watch is already past it: the object may have been changed or deleted since.
        """
        if self.select.fields or (self.namespace and written.meta.namespace != self.namespace):
            return
        before = self._objects.get(written.meta.key)
        known = max(self._version, version_of(before) if before is not None else 0)
        if version_of(written) > known and self._selected(written.meta.labels):
            self._change(written.meta.key, before, written, Priority.URGENT)

    def update(self, thing: T) -> None:
        """Takes an event of the watch, unless an observed write is newer."""
        key = thing.meta.key
        before = self._objects.get(key)
        self._version = version_of(thing)
        if before is None or version_of(before) < self._version:
            self._change(key, before, thing, Priority.URGENT)

    def delete(self, meta: ObjectMeta) -> None:
        """Removes an object, given the metadata of its last state."""
        before = self._objects.get(meta.key)
        self._version = int(meta.resource_version)
        self.unreadable.pop(meta.key, None)
        if before is not None and version_of(before) <= self._version:
            self._change(meta.key, before, None, Priority.URGENT)

    def mark_unreadable(self, meta: ObjectMeta, why: str) -> None:
        """Records that an object changed but cannot be decoded. With a new uid, the previous object is removed."""
        if not self._is_known(meta):
            self.delete(meta)
        self._version = int(meta.resource_version)
        self.unreadable[meta.key] = why

    def replace_all(
        self,
        things: MutableMapping[ObjectKey, T],
        version: int,
        unreadable: Mapping[ObjectKey, UndecodableObject] = _ALL_READABLE,
    ) -> None:
        """Replaces all objects by a list.

        An object not in it is removed, unless it was written after the list was made.

        A list older than the last version comes from a server that was restored from a backup: it counts.
        """
        restored = version < self._version
        self._version = version
        for key, event in unreadable.items():
            if self._is_known(event.meta):
                things[key] = self._objects[key]
        if self._objects:
            self._compare(things, version, restored=restored)
        else:
            # The first list becomes the store: copying each of thousands would cost as much again.
            self._objects = things
            for key, thing in things.items():
                self._notify(key, None, thing, Priority.PATIENT)
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

    def set_version(self, version: int) -> None:
        self._version = version

    def _is_known(self, meta: ObjectMeta) -> bool:
        known = self._objects.get(meta.key)
        return known is not None and known.meta.uid == meta.uid

    def _change(self, key: ObjectKey, before: T | None, after: T | None, lane: Priority) -> None:
        self.unreadable.pop(key, None)
        if after is None:
            del self._objects[key]
        else:
            self._objects[key] = after
        self._notify(key, before, after, lane)

    def _notify(self, key: ObjectKey, before: T | None, after: T | None, lane: Priority) -> None:
        for index in self._indexes:
            index.replace(key, before, after)
        for listener in self._listeners:
            listener(before, after, lane)


def version_of(thing: KubeObject) -> int:
    """The version as a number. Versions of one kind are comparable, by specification since Kubernetes 1.35."""
    return int(thing.meta.resource_version or 0)


def by_owner(thing: KubeObject) -> Iterable[str]:
    """Index function: the uid of each owner."""
    return (owner.uid for owner in thing.meta.owners)


def by_label(name: str) -> Callable[[KubeObject], Iterable[str]]:
    """Index function: the value of one label."""
    return lambda thing: (thing.meta.labels[name],) if name in thing.meta.labels else ()
