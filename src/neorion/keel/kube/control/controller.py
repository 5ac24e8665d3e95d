"""A controller: changes of objects enqueue keys, and workers reconcile one key at a time."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import anyio
import anyio.lowlevel

from neorion.keel.base import Conflict, Duration, Error, Retry, Terminal
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube.control.informer import Informer
from neorion.keel.kube.control.metrics_port import UNMEASURED, ControlMetricsSink, ReconcileOutcome
from neorion.keel.kube.control.queue import K, Priority, QueueItem, WorkQueue
from neorion.keel.kube.kinds import Kind
from neorion.keel.kube.objects import KubeObject, ObjectKey
from neorion.keel.telemetry import logger

log = logger(__name__)

T = TypeVar("T", bound=KubeObject)

Reconcile = Callable[[K], Awaitable[Duration | None]]

# Keys reconciled at the same time: enough to keep one API server busy while each waits for its writes.
WORKERS: Final = 32
# A reconcile that takes longer is stuck, and its key with it.
RECONCILE_S_MAX: Final = 120.0
# Objects enqueued before the loop runs other tasks: thousands in a row would delay the renewal of the lease.
KEYS_PER_YIELD: Final = 100
# A conflict ends when the informer has caught up, so its backoff never needs minutes.
CONFLICT_WAIT_MOST: Final = Duration.of(seconds=1)


class Controller(Generic[K]):
    """Calls `reconcile(key)` after each relevant change for the key, and after the delay that it returned.

    A reconcile reads the informers, decides, writes differences, and may return the delay until its next call. It never
    runs twice at once for one key. After an error it is called again with backoff. After a `Terminal` error it waits
    for the next change.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[K],
        clock: Clock,
        rng: Rng,
        measures: ControlMetricsSink = UNMEASURED,
        workers: int = WORKERS,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._clock = clock
        self._rng = rng
        self._measures = measures
        self._workers = workers
        self._watched: dict[Informer[Any], list[Callable[[Any], Iterable[K]]]] = {}
        self._queue: WorkQueue[K] | None = None
        self._stopping = False

    def watch(
        self,
        informer: Informer[T],
        keys: Callable[[T], Iterable[K]],
        matters: Callable[[T, T], bool] = lambda _before, _after: True,
        *,
        begins: bool = True,
    ) -> None:
        """Enqueues the keys that `keys` returns for a changed object, before and after the change.

        `matters` filters changes. At the start, the keys of all existing objects are enqueued. Set `begins` to False
        for objects whose keys other informers provide.
        """

        def on_change(before: T | None, after: T | None, lane: Priority) -> None:
            # A controller that is not running ignores changes, because it enqueues everything when it starts.
            if self._queue is None or (before and after and not matters(before, after)):
                return
            for thing in (before, after):
                for key in keys(thing) if thing else ():
                    self._queue.add(key, lane)

        informer.listen(on_change)
        mappings = self._watched.setdefault(informer, [])
        if begins:
            mappings.append(keys)

    def wake(self, key: K) -> None:
        """Enqueues a key for a reason that no informer shows. Ignored while not running: a start enqueues everything."""
        if self._queue is not None:
            self._queue.add(key)

    @property
    def running(self) -> bool:
        return self._queue is not None

    @property
    def idle(self) -> bool:
        """True if nothing is left to do until an object changes or a delay ends."""
        return self._queue is not None and self._queue.idle

    @property
    def failing(self) -> int:
        """The number of keys whose last reconcile failed."""
        return self._queue.failing if self._queue is not None else 0

    async def run(self) -> None:
        """Runs until `stop`, beginning with every existing key. Reconciles under way are finished first."""
        for informer in self._watched:
            await informer.wait_synced()
        if self._stopping:
            return
        queue = self._queue = WorkQueue(self._clock, self._rng)
        try:
            await self._add_everything(queue)
            async with anyio.create_task_group() as timers:
                timers.start_soon(queue.run, name=f"{self.name} timers")
                async with anyio.create_task_group() as workers:
                    for number in range(self._workers):
                        workers.start_soon(self._work, queue, name=f"{self.name} worker {number}")
                timers.cancel_scope.cancel()
        finally:
            self._queue = None

    async def _add_everything(self, queue: WorkQueue[K]) -> None:
        """Enqueues the keys of all existing objects. The queue exists already, so changes meanwhile are not lost."""
        for informer, mappings in self._watched.items():
            for number, name in enumerate(informer.keys() if mappings else ()):
                if (number + 1) % KEYS_PER_YIELD == 0:
                    await anyio.lowlevel.checkpoint()
                thing = informer.get(name)
                for keys in mappings if thing is not None else ():
                    for key in keys(thing):
                        queue.add(key, Priority.PATIENT)

    def stop(self) -> None:
        self._stopping = True
        if self._queue is not None:
            self._queue.close()

    async def _work(self, queue: WorkQueue[K]) -> None:
        while (taken := await queue.take()) is not None:
            began = self._clock.monotonic()
            ending = await self._turn(queue, taken)
            ended = self._clock.monotonic()
            self._measures.worked(self.name, ending, began - taken.since, ended - began)
            self._measures.queued(self.name, len(queue), queue.failing)
            # A reconcile without work never suspends: thousands in a row would delay the renewal of the lease.
            await anyio.lowlevel.checkpoint()

    async def _turn(self, queue: WorkQueue[K], taken: QueueItem[K]) -> ReconcileOutcome:
        key = taken.key
        try:
            with anyio.fail_after(RECONCILE_S_MAX):
                wake_after = await self._reconcile(key)
        except Terminal as error:
            log.failure("reconcile gave up", error, controller=self.name, key=str(key))
            queue.finish(key)
            return ReconcileOutcome.REFUSED
        except Conflict as error:
            # The object has changed; the next reconcile reads it again.
            log.debug("reconcile met a conflict", controller=self.name, key=str(key), error=str(error))
            queue.fail(key, at_most=CONFLICT_WAIT_MOST)
            return ReconcileOutcome.CONFLICT
        except Error as error:
            wait = queue.fail(key, after=error.after if isinstance(error, Retry) else None)
            log.warning(
                "reconcile failed", controller=self.name, key=str(key), error=str(error), again_in=str(wait)
            )
            return ReconcileOutcome.LATER
        except Exception as error:  # noqa: BLE001 -- a bug met by one object must not stop the others
            wait = queue.fail(key)
            log.failure("reconcile crashed", error, controller=self.name, key=str(key), again_in=str(wait))
            return ReconcileOutcome.CRASHED
        queue.finish(key, wake_after)
        return ReconcileOutcome.DONE


def self_key(thing: KubeObject) -> Iterable[ObjectKey]:
    """Maps an object to its own key."""
    return (thing.meta.key,)


def owner_key(kind: Kind[Any]) -> Callable[[KubeObject], Iterable[ObjectKey]]:
    """Maps an object to the keys of its owners of this kind."""

    def keys(thing: KubeObject) -> Iterable[ObjectKey]:
        return (
            ObjectKey(thing.meta.namespace if kind.namespaced else "", owner.name)
            for owner in thing.meta.owners
            if owner.kind == kind.name and owner.api_version.rpartition("/")[0] == kind.group
        )

    return keys


def generation_changed(before: KubeObject, after: KubeObject) -> bool:
    """True if more than the status has changed, for kinds with generations. The controller itself writes the status."""
    old, new = before.meta, after.meta
    return (
        old.generation != new.generation
        or old.uid != new.uid
        or old.labels != new.labels
        or old.annotations != new.annotations
        or old.finalizers != new.finalizers
        or old.deleted != new.deleted
    )
