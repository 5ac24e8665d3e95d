"""Reflector: watches one kind for its informer. Resumes an ended watch, relists after 410, and ends a silent watch."""

from typing import Any, Final, Generic, TypeVar

import anyio

from neorion.keel.base import Duration, Error, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube.control.informer import Informer
from neorion.keel.kube.control.metrics_port import UNMEASURED, ControlMetricsSink
from neorion.keel.kube.errors import ResourceExpired
from neorion.keel.kube.interface import (
    ALL,
    Added,
    Bookmark,
    Deleted,
    KubeApi,
    Modified,
    Selector,
    UndecodableObject,
    WatchEvent,
)
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import KubeObject, ObjectKey
from neorion.keel.run import Backoff
from neorion.keel.telemetry import logger

log = logger(__name__)

T = TypeVar("T", bound=KubeObject)

# A server sends a bookmark to every watch about once a minute: after this long without one, the connection is dead.
SILENCE: Final = Duration.of(seconds=100)
# When a server compacts its history, it does so for all watchers: they return spread over this time.
ANEW_WITHIN: Final = Duration.of(seconds=2)
# A shorter watch counts as failed. Otherwise a server that ends every watch at once would be called in a tight loop.
SHORT_S: Final = 1.0
BACKOFF: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=20))


class Reflector(Generic[T]):
    """Watches for as long as the process runs, whatever the server does."""

    def __init__(
        self,
        api: KubeApi,
        informer: Informer[T],
        clock: Clock,
        rng: Rng,
        silence: Duration = SILENCE,
        measures: ControlMetricsSink = UNMEASURED,
    ) -> None:
        self.informer = informer
        # The reason why no events arrive, for people; empty while the watch works.
        self.trouble = ""
        self._api = api
        self._clock = clock
        self._rng = rng
        self._silence = silence
        self._measures = measures
        self._unreadable = 0
        self._since = ""
        # The objects received so far, while a list is being received.
        self._list = informer.new_store()
        self._unread: dict[ObjectKey, UndecodableObject] = {}

    async def run(self) -> None:
        failures = 0
        while True:
            began = self._clock.monotonic()
            try:
                await self._follow()
                failures = failures + 1 if self._clock.monotonic() - began < SHORT_S else 0
                wait = BACKOFF.wait(failures, self._rng) if failures else Duration(0)
            except ResourceExpired:
                self._since = ""
                wait = ANEW_WITHIN * self._rng.random()
                log.info("watch starts again", kind=self.informer.kind.resource)
            except Error as error:
                failures = 1 if self._clock.monotonic() - began > BACKOFF.most.seconds else failures + 1
                wait = BACKOFF.wait(failures, self._rng)
                wait = max(wait, error.after) if isinstance(error, Retry) and error.after else wait
                self.trouble = f"{self.informer.kind.resource}: {error.sentence}"
                log.warning(
                    "watch broken", kind=self.informer.kind.resource, error=str(error), wait=str(wait)
                )
            await self._clock.sleep(wait)

    async def _follow(self) -> None:
        """Runs one watch from beginning to end. It resumes after the last version, or starts with a list of everything."""
        informer = self.informer
        self._list, self._unread = informer.new_store(), {}
        with anyio.CancelScope() as listening:
            listening.deadline = anyio.current_time() + self._silence.seconds
            async with self._api.watch(
                informer.kind, informer.namespace, informer.select, self._since
            ) as events:
                self.trouble = ""
                async for event in events:
                    listening.deadline = anyio.current_time() + self._silence.seconds
                    self._on_event(event)
        if listening.cancelled_caught:
            raise Retry("kube.watch_silent", f"The watch delivered nothing for {self._silence}.")

    def _on_event(self, event: WatchEvent[T]) -> None:
        if isinstance(event, UndecodableObject):
            self._report(event)
        if self._since:
            self._apply_change(event)
        else:
            self._apply_list(event)
        if (count := len(self.informer.unreadable)) != self._unreadable:
            self._unreadable = count
            self._measures.unreadable(self.informer.kind.resource, count)

    def _apply_list(self, event: WatchEvent[T]) -> None:
        """Collects the list. Changes may come before its end, because some servers mark the end a moment later."""
        match event:
            case Added(thing) | Modified(thing):
                self._list[thing.meta.key] = thing
                self._unread.pop(thing.meta.key, None)
            case Bookmark(version, initial_done):
                if initial_done:
                    self._take_list(version)
            case UndecodableObject(meta, gone=False):
                self._list.pop(meta.key, None)
                self._unread[meta.key] = event
            case UndecodableObject(meta) | Deleted(KubeObject(meta=meta)):
                self._list.pop(meta.key, None)
                self._unread.pop(meta.key, None)

    def _take_list(self, version: str) -> None:
        informer = self.informer
        if self._unread and not (informer.gaps or informer.synced):
            # Objects missing in an informer count as deleted, and the state of these is unknown.
            raise next(iter(self._unread.values())).error
        listed, self._list = self._list, informer.new_store()
        unread, self._unread = self._unread, {}
        informer.replace_all(listed, int(version), unread)
        self._since = version

    def _apply_change(self, event: WatchEvent[T]) -> None:
        informer = self.informer
        match event:
            case Added(thing) | Modified(thing):
                informer.update(thing)
                self._since = thing.meta.resource_version
            case Bookmark(version):
                informer.set_version(int(version))
                self._since = version
            case UndecodableObject(meta, error, gone):
                if gone:
                    informer.delete(meta)
                else:
                    informer.mark_unreadable(meta, error.sentence)
                self._since = meta.resource_version
            case Deleted(thing):
                informer.delete(thing.meta)
                self._since = thing.meta.resource_version

    def _report(self, event: UndecodableObject) -> None:
        """Logs an unreadable object once, until it can be decoded again."""
        key = event.meta.key
        if not event.gone and key not in self.informer.unreadable and key not in self._unread:
            log.failure("object unreadable", event.error, kind=self.informer.kind.resource, key=str(key))


class InformerFactory:
    """The informers of one process. Equal selections share one informer and one watch."""

    def __init__(
        self,
        api: KubeApi,
        clock: Clock,
        rng: Rng,
        silence: Duration = SILENCE,
        measures: ControlMetricsSink = UNMEASURED,
    ) -> None:
        self._api = api
        self.clock = clock
        self._rng = rng
        self._silence = silence
        self._measures = measures
        self._reflectors: dict[tuple[Kind[Any], str, Selector], Reflector[Any]] = {}

    def of(
        self,
        kind: Kind[T],
        namespace: str = "",
        select: Selector = ALL,
        *,
        packed: bool = False,
        gaps: bool = False,
    ) -> Informer[T]:
        """Returns the informer of a selection, creating it. Call it before `run`.

        The first caller decides `packed` and `gaps`.
        """
        selection = (kind, namespace, select)
        if selection not in self._reflectors:
            informer = Informer(kind, namespace, select, packed=packed, gaps=gaps)
            self._reflectors[selection] = Reflector(
                self._api, informer, self.clock, self._rng, self._silence, self._measures
            )
        return self._reflectors[selection].informer

    @property
    def troubles(self) -> list[str]:
        """The reasons why informers may be behind, one sentence each."""
        return [reflector.trouble for reflector in self._reflectors.values() if reflector.trouble]

    @property
    def unreadable(self) -> list[str]:
        """Informers that are incomplete, one sentence each with one example."""
        found = (
            (reflector.informer.kind.resource, reflector.informer.unreadable)
            for reflector in self._reflectors.values()
        )
        return [
            f"{len(objects)} of {resource} cannot be read, {key} for one: {why}"
            for resource, objects in found
            for key, why in [*objects.items()][:1]
        ]

    @property
    def synced(self) -> bool:
        return all(reflector.informer.synced for reflector in self._reflectors.values())

    async def wait_synced(self) -> None:
        for reflector in self._reflectors.values():
            await reflector.informer.wait_synced()

    def observe(self, kind: Kind[T], written: T) -> None:
        """Passes a written object to every informer that may contain it."""
        for (other, _, _), reflector in self._reflectors.items():
            if other == kind:
                reflector.informer.observe(written)

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for reflector in self._reflectors.values():
                group.start_soon(reflector.run, name=f"watch {reflector.informer.kind.resource}")
