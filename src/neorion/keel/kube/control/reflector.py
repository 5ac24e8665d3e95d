"""What keeps a mirror true: one watch that is resumed when it ends, begun anew when it is too late, and cut when it goes silent."""

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

# A server bookmarks every watch once a minute, give or take a quarter: past this the connection is dead and does not know it.
SILENCE: Final = Duration.of(seconds=100)
# When a server forgets the past it does so for all watchers: they come back spread over this time.
ANEW_WITHIN: Final = Duration.of(seconds=2)
# A watch that ended after less counts as failed, or a server that ends every watch at once would be asked in a tight loop.
SHORT_S: Final = 1.0
BACKOFF: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=20))


class Reflector(Generic[T]):
    """Runs for as long as the process does, whatever the server does."""

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
        # Why nothing is heard just now, for people; empty while all is well.
        self.trouble = ""
        self._api = api
        self._clock = clock
        self._rng = rng
        self._silence = silence
        self._measures = measures
        self._unreadable = 0
        self._since = ""
        # What the list holds so far, where one is being heard.
        self._list = informer.shelf()
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
                log.info("watch begins anew", kind=self.informer.kind.resource)
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
        """One watch from beginning to end. It starts where the last one ended, or with the list of everything."""
        informer = self.informer
        self._list, self._unread = informer.shelf(), {}
        with anyio.CancelScope() as listening:
            listening.deadline = anyio.current_time() + self._silence.seconds
            async with self._api.watch(
                informer.kind, informer.namespace, informer.select, self._since
            ) as events:
                self.trouble = ""
                async for event in events:
                    listening.deadline = anyio.current_time() + self._silence.seconds
                    self._hear(event)
        if listening.cancelled_caught:
            raise Retry("kube.watch_silent", f"Nothing was heard for {self._silence}.")

    def _hear(self, event: WatchEvent[T]) -> None:
        if isinstance(event, UndecodableObject):
            self._report(event)
        if self._since:
            self._hear_change(event)
        else:
            self._hear_list(event)
        if (count := len(self.informer.unreadable)) != self._unreadable:
            self._unreadable = count
            self._measures.unreadable(self.informer.kind.resource, count)

    def _hear_list(self, event: WatchEvent[T]) -> None:
        """Changes may come before the list is whole: some servers mark its end a moment later."""
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
            # What is not in a mirror is taken for gone, and of these nothing is known yet.
            raise next(iter(self._unread.values())).error
        heard, self._list = self._list, informer.shelf()
        unread, self._unread = self._unread, {}
        informer.hear_all(heard, int(version), unread)
        self._since = version

    def _hear_change(self, event: WatchEvent[T]) -> None:
        informer = self.informer
        match event:
            case Added(thing) | Modified(thing):
                informer.hear(thing)
                self._since = thing.meta.resource_version
            case Bookmark(version):
                informer.hear_version(int(version))
                self._since = version
            case UndecodableObject(meta, error, gone):
                if gone:
                    informer.hear_gone(meta)
                else:
                    informer.hear_unreadable(meta, error.sentence)
                self._since = meta.resource_version
            case Deleted(thing):
                informer.hear_gone(thing.meta)
                self._since = thing.meta.resource_version

    def _report(self, event: UndecodableObject) -> None:
        """Once for each object, until it can be read again."""
        key = event.meta.key
        if not event.gone and key not in self.informer.unreadable and key not in self._unread:
            log.failure("object unreadable", event.error, kind=self.informer.kind.resource, key=str(key))


class InformerFactory:
    """The mirrors of one process: whoever asks for the same objects gets the same one, fed by the same watch."""

    def __init__(
        self,
        api: KubeApi,
        clock: Clock,
        rng: Rng,
        silence: Duration = SILENCE,
        measures: ControlMetricsSink = UNMEASURED,
    ) -> None:
        self._api = api
        self._clock = clock
        self._rng = rng
        self._silence = silence
        self._measures = measures
        self._feeds: dict[tuple[Kind[Any], str, Selector], Reflector[Any]] = {}

    def of(
        self,
        kind: Kind[T],
        namespace: str = "",
        select: Selector = ALL,
        *,
        packed: bool = False,
        gaps: bool = False,
    ) -> Informer[T]:
        """Ask before `run`: mirrors are part of a program's plan, not of its moods. Who asks first says how it is kept."""
        question = (kind, namespace, select)
        if question not in self._feeds:
            informer = Informer(kind, namespace, select, packed=packed, gaps=gaps)
            self._feeds[question] = Reflector(
                self._api, informer, self._clock, self._rng, self._silence, self._measures
            )
        return self._feeds[question].informer

    @property
    def troubles(self) -> list[str]:
        """Why mirrors may be behind, one sentence each."""
        return [feed.trouble for feed in self._feeds.values() if feed.trouble]

    @property
    def unreadable(self) -> list[str]:
        """Which mirrors are not whole, one sentence each with one example."""
        found = ((feed.informer.kind.resource, feed.informer.unreadable) for feed in self._feeds.values())
        return [
            f"{len(objects)} of {resource} cannot be read, {key} for one: {why}"
            for resource, objects in found
            for key, why in [*objects.items()][:1]
        ]

    @property
    def synced(self) -> bool:
        return all(feed.informer.synced for feed in self._feeds.values())

    async def wait_synced(self) -> None:
        for feed in self._feeds.values():
            await feed.informer.wait_synced()

    def observe(self, kind: Kind[T], written: T) -> None:
        """Shows what was written to every mirror that may hold it."""
        for (other, _, _), feed in self._feeds.items():
            if other == kind:
                feed.informer.observe(written)

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for feed in self._feeds.values():
                group.start_soon(feed.run, name=f"watch {feed.informer.kind.resource}")
