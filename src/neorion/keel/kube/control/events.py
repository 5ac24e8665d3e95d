"""What people see in `kubectl describe`: Events, told without waiting, written seldom."""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import anyio

from neorion.keel.base import Duration, Error, Instant, NotFound, Retry
from neorion.keel.clock import Clock
from neorion.keel.kube.core import EVENT, Event, EventSeries, ObjectReference
from neorion.keel.kube.errors import AlreadyExists
from neorion.keel.kube.interface import KubeApi, MergePatch
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import KubeObject, ObjectMeta, micro_time_text
from neorion.keel.telemetry import logger

log = logger(__name__)

# What a server takes, in UTF-8: longer notes are refused whole.
NOTE_BYTES_MAX: Final = 1024
# Things told apart and remembered; the oldest is forgotten, and would begin a new Event.
TOLD_MAX: Final = 5_000
# A repetition is counted at once and written when this long has passed since the last write about it.
REPEAT_AFTER: Final = Duration.of(seconds=60)
# Between two writes: at most twenty a second, whatever goes wrong in the cluster.
GAP: Final = Duration.of(ms=50)


class _EventKey(NamedTuple):
    """What makes two tellings the same."""

    uid: str
    type: str
    reason: str
    action: str


@dataclass(slots=True)
class _RecordedEvent:
    """One matter: how often it was told, and how much of that the server knows."""

    regarding: ObjectReference
    note: str
    first: Instant
    last: Instant
    count: int = 1
    written: int = 0
    written_at: float = float("-inf")


class EventRecorder:
    """The same thing told again is one Event with a count. Telling never waits and never fails; `run` must be running."""

    def __init__(self, api: KubeApi, controller: str, instance: str, clock: Clock) -> None:
        self._api = api
        self._controller = controller
        self._instance = instance
        self._clock = clock
        self._told: OrderedDict[_EventKey, _RecordedEvent] = OrderedDict()
        self._news = anyio.Event()

    def tell(
        self,
        kind: Kind[Any],
        thing: KubeObject,
        reason: str,
        note: str,
        *,
        action: str = "Reconcile",
        warning: bool = False,
    ) -> None:
        """`reason` is one word for machines, `note` a sentence for people."""
        matter = _EventKey(thing.meta.uid, "Warning" if warning else "Normal", reason, action)
        now = self._clock.now()
        note = note.encode()[:NOTE_BYTES_MAX].decode(errors="ignore")
        told = self._told.get(matter)
        if told is None:
            self._told[matter] = _RecordedEvent(_reference(kind, thing.meta), note, now, now)
            if len(self._told) > TOLD_MAX:
                self._told.popitem(last=False)
        else:
            told.note, told.last, told.count = note, now, told.count + 1
            self._told.move_to_end(matter)
        self._news.set()

    async def run(self) -> None:
        while True:
            self._news = anyio.Event()
            for matter, told in self._due():
                await self._write(matter, told)
                await self._clock.sleep(GAP)
            # Repetitions that are not due yet are looked at again when they may be.
            with anyio.move_on_after(REPEAT_AFTER.seconds if self._behind() else None):
                await self._news.wait()

    def _due(self) -> list[tuple[_EventKey, _RecordedEvent]]:
        before = self._clock.monotonic() - REPEAT_AFTER.seconds
        return [
            (matter, told)
            for matter, told in self._told.items()
            if told.written < told.count and told.written_at <= before
        ]

    def _behind(self) -> bool:
        return any(told.written < told.count for told in self._told.values())

    async def _write(self, matter: _EventKey, told: _RecordedEvent) -> None:
        count = told.count
        told.written_at = self._clock.monotonic()
        try:
            if told.written == 0 or not await self._count(matter, told):
                await self._api.create(EVENT, self._event(matter, told))
            told.written = count
        except AlreadyExists:
            # The answer to the first write was lost. What was told since is counted on it.
            told.written = 1
        except Retry as error:
            # Events are a courtesy: the work goes on without them.
            log.warning("event not written yet", reason=matter.reason, error=str(error))
        except Error as error:
            # Whoever refuses it now refuses it in a minute too, as a namespace that is going or gone.
            told.written = count
            log.warning("event not written", reason=matter.reason, error=str(error))

    async def _count(self, matter: _EventKey, told: _RecordedEvent) -> bool:
        """Whether the Event was still there to be counted on: servers drop Events after an hour."""
        series = {"count": told.count, "lastObservedTime": micro_time_text(told.last)}
        meta = _meta(matter, told)
        try:
            await self._api.patch(
                EVENT, meta.name, MergePatch({"series": series, "note": told.note}), meta.namespace
            )
        except NotFound:
            told.first = told.last
            return False
        return True

    def _event(self, matter: _EventKey, told: _RecordedEvent) -> Event:
        return Event(
            meta=_meta(matter, told),
            event_time=micro_time_text(told.first),
            regarding=told.regarding,
            type=matter.type,
            reason=matter.reason,
            action=matter.action,
            note=told.note,
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            series=EventSeries(told.count, micro_time_text(told.last)) if told.count > 1 else None,
        )


def _meta(matter: _EventKey, told: _RecordedEvent) -> ObjectMeta:
    unique = blake2b(f"{matter}{told.first.ns}".encode(), digest_size=8).hexdigest()
    # Events about cluster-wide objects live in "default".
    return ObjectMeta(
        name=f"{told.regarding.name[:200]}.{unique}", namespace=told.regarding.namespace or "default"
    )


def _reference(kind: Kind[Any], meta: ObjectMeta) -> ObjectReference:
    return ObjectReference(
        api_version=kind.api_version, kind=kind.name, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
