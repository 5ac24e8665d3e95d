"""Events for `kubectl describe`: recorded without waiting, aggregated, and written at a limited rate."""

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

# The server's limit in UTF-8; it rejects longer notes.
NOTE_BYTES_MAX: Final = 1024
# Distinct events in memory. The oldest is dropped, and its repetition would begin a new Event.
RECORDED_MAX: Final = 5_000
# A repetition is counted at once, and written when this long has passed since the last write of its Event.
REPEAT_AFTER: Final = Duration.of(seconds=60)
# The pause between two writes: at most twenty per second, whatever fails in the cluster.
GAP: Final = Duration.of(ms=50)


class _EventKey(NamedTuple):
    """The identity of an event; occurrences with the same key are counted as one."""

    uid: str
    type: str
    reason: str
    action: str


@dataclass(slots=True)
class _RecordedEvent:
    """One event: the number of occurrences, and how many of them are written."""

    regarding: ObjectReference
    note: str
    first: Instant
    last: Instant
    count: int = 1
    written: int = 0
    written_at: float = float("-inf")


class EventRecorder:
    """Aggregates repeated events into one Event with a count. Recording never waits and never fails; `run` writes."""

    def __init__(self, api: KubeApi, controller: str, instance: str, clock: Clock) -> None:
        self._api = api
        self._controller = controller
        self._instance = instance
        self._clock = clock
        self._recorded: OrderedDict[_EventKey, _RecordedEvent] = OrderedDict()
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
        """Records an event. `reason` is one CamelCase word for programs, `note` a sentence for people."""
        event_key = _EventKey(thing.meta.uid, "Warning" if warning else "Normal", reason, action)
        now = self._clock.now()
        note = note.encode()[:NOTE_BYTES_MAX].decode(errors="ignore")
        recorded = self._recorded.get(event_key)
        if recorded is None:
            self._recorded[event_key] = _RecordedEvent(_reference(kind, thing.meta), note, now, now)
            if len(self._recorded) > RECORDED_MAX:
                self._recorded.popitem(last=False)
        else:
            recorded.note, recorded.last, recorded.count = note, now, recorded.count + 1
            self._recorded.move_to_end(event_key)
        self._news.set()

    async def run(self) -> None:
        while True:
            self._news = anyio.Event()
            for event_key, recorded in self._due():
                await self._write(event_key, recorded)
                await self._clock.sleep(GAP)
            # Repetitions that are not due yet are checked again later.
            with anyio.move_on_after(REPEAT_AFTER.seconds if self._behind() else None):
                await self._news.wait()

    def _due(self) -> list[tuple[_EventKey, _RecordedEvent]]:
        before = self._clock.monotonic() - REPEAT_AFTER.seconds
        return [
            (event_key, recorded)
            for event_key, recorded in self._recorded.items()
            if recorded.written < recorded.count and recorded.written_at <= before
        ]

    def _behind(self) -> bool:
        return any(recorded.written < recorded.count for recorded in self._recorded.values())

    async def _write(self, event_key: _EventKey, recorded: _RecordedEvent) -> None:
        count = recorded.count
        recorded.written_at = self._clock.monotonic()
        try:
            if recorded.written == 0 or not await self._count(event_key, recorded):
                await self._api.create(EVENT, self._event(event_key, recorded))
            recorded.written = count
        except AlreadyExists:
            # The response to the first write was lost. Later occurrences are counted on it.
            recorded.written = 1
        except Retry as error:
            # Events are optional, so the work goes on without them.
            log.warning("event not written yet", reason=event_key.reason, error=str(error))
        except Error as error:
            # A rejected event would be rejected again, as in a namespace that is being deleted.
            recorded.written = count
            log.warning("event not written", reason=event_key.reason, error=str(error))

    async def _count(self, event_key: _EventKey, recorded: _RecordedEvent) -> bool:
        """Updates the count of an Event; false if it no longer exists. Servers delete Events after an hour."""
        series = {"count": recorded.count, "lastObservedTime": micro_time_text(recorded.last)}
        meta = _meta(event_key, recorded)
        try:
            await self._api.patch(
                EVENT, meta.name, MergePatch({"series": series, "note": recorded.note}), meta.namespace
            )
        except NotFound:
            recorded.first = recorded.last
            return False
        return True

    def _event(self, event_key: _EventKey, recorded: _RecordedEvent) -> Event:
        return Event(
            meta=_meta(event_key, recorded),
            event_time=micro_time_text(recorded.first),
            regarding=recorded.regarding,
            type=event_key.type,
            reason=event_key.reason,
            action=event_key.action,
            note=recorded.note,
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            series=EventSeries(recorded.count, micro_time_text(recorded.last))
            if recorded.count > 1
            else None,
        )


def _meta(event_key: _EventKey, recorded: _RecordedEvent) -> ObjectMeta:
    unique = blake2b(f"{event_key}{recorded.first.ns}".encode(), digest_size=8).hexdigest()
    # Events about cluster-wide objects belong to the namespace "default".
    return ObjectMeta(
        name=f"{recorded.regarding.name[:200]}.{unique}", namespace=recorded.regarding.namespace or "default"
    )


def _reference(kind: Kind[Any], meta: ObjectMeta) -> ObjectReference:
    return ObjectReference(
        api_version=kind.api_version, kind=kind.name, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
