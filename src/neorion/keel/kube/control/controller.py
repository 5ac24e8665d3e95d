"""The wheel of an operator: changes become keys, keys wait their turn, and each turn looks at the whole truth of one key."""

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

# Keys in hand at the same time: enough to keep one API server busy while each waits for its writes.
WORKERS: Final = 32
# A reconcile that takes longer hangs, and its key with it.
RECONCILE_S_MAX: Final = 120.0
# Objects looked at before others have their turn: to go through thousands in one go would keep the lease from its renewal.
KEYS_PER_YIELD: Final = 100
# A conflict is over when the mirror has caught up, however often it happened: no reason to wait for minutes.
CONFLICT_WAIT_MOST: Final = Duration.of(seconds=1)


class Controller(Generic[K]):
    """Calls `reconcile(key)` whenever something that matters to the key has changed, and again when it asked to be woken.

    A reconcile reads the mirrors, decides, writes what differs, and says after which time it wants to be called again, if
    at all. It is never called twice at once for one key. When it raises, it is called again, later and later; a
    `Terminal` error waits for the next change instead.
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
        """Lets changes of these objects wake the keys that `keys` names: of the object as it was, and as it is now.

        `matters` may say of a change that it wakes nobody. A controller begins with the keys of all objects there are;
        where `begins` is False, not with those of these, because there is nothing to do for a key that no other names.
        """

        def hear(before: T | None, after: T | None, lane: Priority) -> None:
            # Whoever does not work keeps its mirrors warm and begins with everything.
            if self._queue is None or (before and after and not matters(before, after)):
                return
            for thing in (before, after):
                for key in keys(thing) if thing else ():
                    self._queue.add(key, lane)

        informer.listen(hear)
        ways = self._watched.setdefault(informer, [])
        if begins:
            ways.append(keys)

    def wake(self, key: K) -> None:
        """For what no mirror shows. Whoever does not work now begins with everything anyway."""
        if self._queue is not None:
            self._queue.add(key)

    @property
    def running(self) -> bool:
        return self._queue is not None

    @property
    def idle(self) -> bool:
        """Nothing is left to do until something changes or a wait is over."""
        return self._queue is not None and self._queue.idle

    @property
    def failing(self) -> int:
        """How many keys failed when last worked on."""
        return self._queue.failing if self._queue is not None else 0

    async def run(self) -> None:
        """Works until `stop`, beginning with every key there is. What is in hand then is finished first."""
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
        """What changes meanwhile is heard of: the queue is already there."""
        for informer, ways in self._watched.items():
            for number, name in enumerate(informer.keys() if ways else ()):
                if (number + 1) % KEYS_PER_YIELD == 0:
                    await anyio.lowlevel.checkpoint()
                thing = informer.get(name)
                for keys in ways if thing is not None else ():
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
            # A reconcile that finds nothing to do never waits: thousands in a row would keep the lease from its renewal.
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
            # The world has moved on; the next look decides anew.
            log.debug("reconcile met a conflict", controller=self.name, key=str(key), error=str(error))
            queue.fail(key, at_most=CONFLICT_WAIT_MOST)
            return ReconcileOutcome.CONFLICT
        except Error as error:
            wait = queue.fail(key, at_least=error.after if isinstance(error, Retry) else None)
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
    """An object wakes itself."""
    return (thing.meta.key,)


def owner_key(kind: Kind[Any]) -> Callable[[KubeObject], Iterable[ObjectKey]]:
    """An object wakes its owners of this kind."""

    def keys(thing: KubeObject) -> Iterable[ObjectKey]:
        return (
            ObjectKey(thing.meta.namespace if kind.namespaced else "", owner.name)
            for owner in thing.meta.owners
            if owner.kind == kind.name and owner.api_version.rpartition("/")[0] == kind.group
        )

    return keys


def generation_changed(before: KubeObject, after: KubeObject) -> bool:
    """For kinds with generations: whether more than the status has changed, which the controller itself writes."""
    old, new = before.meta, after.meta
    return (
        old.generation != new.generation
        or old.uid != new.uid
        or old.labels != new.labels
        or old.annotations != new.annotations
        or old.finalizers != new.finalizers
        or old.deleted != new.deleted
    )
