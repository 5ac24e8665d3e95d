"""Autoscaler: creates slices, watches them boot, and deletes those that are not needed.

A slice is a durable record before the platform is called, under an id that makes a repeated call harmless.
Calls to the platform run one at a time outside of the loop, so that they never delay scheduling.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.scheduler import Scheduler
from neorion.iris.controllers.worker_reports import WorkerReports
from neorion.iris.decide import ScalePlan, after_trouble, autoscale
from neorion.iris.model import (
    SLICE,
    GroupView,
    ScaleDelays,
    ScaleFailure,
    ScaleFailureKind,
    SliceId,
    SliceState,
    SliceView,
    WorkerShape,
)
from neorion.iris.model.record import Slice, Worker
from neorion.iris.model.scale_group import ScaleGroup
from neorion.iris.ports import Platform, QuotaNotSet, SliceRequest, SliceStatus
from neorion.keel.base import Callbacks, Error, Instant, NoCapacity, NotFound, QuotaExceeded, Retry
from neorion.keel.telemetry import logger

log = logger(__name__)

_NO_GRACE = Instant(0)
_FAILURE_KINDS: tuple[tuple[type[Error], ScaleFailureKind], ...] = (
    (QuotaNotSet, ScaleFailureKind.NO_QUOTA),
    (QuotaExceeded, ScaleFailureKind.QUOTA),
    (NoCapacity, ScaleFailureKind.NO_CAPACITY),
)

Effect = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ControllerEndpoint:
    """Address of the controller for new workers, and their join token per slice."""

    address: str
    token: Callable[[SliceId], str]


class Autoscaler:
    """Controller that keeps each scale group at the size set by its demand, its limits and its failures."""

    def __init__(
        self,
        context: ControllerContext,
        scheduler: Scheduler,
        reports: WorkerReports,
        platform: Platform,
        groups: Sequence[ScaleGroup],
        home: ControllerEndpoint,
    ) -> None:
        self._context = context
        self._cluster = context.cluster
        self._scheduler = scheduler
        self._reports = reports
        self._platform = platform
        self._groups = {group.name: group for group in groups}
        self._home = home
        self._idle: dict[SliceId, Instant] = {}
        self._ready: dict[SliceId, Instant] = {}
        self._short: dict[SliceId, Instant] = {}
        self._drained: dict[SliceId, Instant] = {}
        self._troubles: dict[str, ScaleFailure] = {}
        self._effects: asyncio.Queue[Effect] = asyncio.Queue()
        self.wake: Callbacks[[]] = Callbacks()
        self.on_pass: Callbacks[[]] = Callbacks()

    async def adopt(self) -> None:
        """Reconciles the records with the platform's slices after a start."""
        actual = {status.id: status for status in await self._platform.list_all_slices()}
        for slice_ in list(self._cluster.slices.values()):
            if slice_.id not in actual and slice_.state is not SliceState.CREATING:
                # It was stopped or lost while no controller ran, so the cause is unknown.
                for worker in self._workers(slice_):
                    self._reports.remove_worker(worker, "gone before the controller came back")
                self._remove(slice_)
            elif slice_.state is SliceState.DELETING:
                self._request_deletion(slice_)
            elif slice_.group not in self._groups:
                log.info(
                    "slice given back", slice=slice_.id, why=f"there is no group {slice_.group} any more"
                )
                self._request_deletion(self._move(slice_, SliceState.DELETING))
            elif slice_.id not in actual:
                self._request_creation(slice_)
            else:
                # The platform does not repeat changes that happened while no controller ran.
                self._apply_status(actual[slice_.id])
        for stray in actual.keys() - self._cluster.slices.keys():
            log.warning("slice without a record", slice=stray)
            self._effects.put_nowait(lambda stray=stray: self._platform.terminate(stray))

    async def watch(self) -> None:
        """Applies the platform's changes of slices as they arrive."""
        async for status in self._platform.changes():
            self._apply_status(status)
            self.wake()

    async def work(self) -> None:
        """Makes the queued platform calls, one at a time."""
        while True:
            effect = await self._effects.get()
            try:
                self._context.store.check_lease()
                await effect()
            except Retry as error:
                log.warning("the platform is not asked yet", why=error.sentence)
                pause = error.after.seconds if error.after else 1.0
                asyncio.get_running_loop().call_later(pause, self._effects.put_nowait, effect)

    async def tick(self) -> None:
        now = self._context.clock.now()
        self._update_slices(now)
        plan = self._scheduler.plan
        demand, promised = (plan.demand, plan.promised) if plan is not None else ((), ())
        decided = autoscale(self._views(), demand, now, promised)
        self._context.reasons.scaling = decided.reasons
        self.on_pass()
        created = self._carry_out(decided)
        await self._context.journal.wait_durable()
        for slice_ in created:
            self._request_creation(slice_)
        if decided.wake_at is not None:
            asyncio.get_running_loop().call_later(decided.wake_at.since(now).seconds, self.wake)

    def _carry_out(self, plan: ScalePlan) -> list[Slice]:
        created = [self._create(create.group) for create in plan.creates for _ in range(create.slices)]
        for slice_ in map(self._cluster.slices.__getitem__, plan.fails):
            if slice_.state is SliceState.READY:
                self._fail(slice_, "one of its workers is gone and did not return", None)
            else:
                self._fail(slice_, "its workers did not join in time", ScaleFailureKind.FAILED)
        for delete in plan.deletes:
            log.info("slice given back", slice=delete.slice, why=delete.cause)
            self._context.metrics.scaled(delete.group, f"delete_{delete.cause}")
            self._request_deletion(self._move(self._cluster.slices[delete.slice], SliceState.DELETING))
        return created

    def _create(self, group: str) -> Slice:
        slice_ = Slice(self._context.ids.new(SliceId), group, self._context.clock.now())
        self._cluster.put_slice(slice_)
        log.info("slice asked for", slice=slice_.id, group=group)
        self._context.metrics.scaled(group, "create")
        return slice_

    def _request_creation(self, slice_: Slice) -> None:
        group = self._groups[slice_.group]
        request = SliceRequest(
            id=slice_.id,
            group=slice_.group,
            machines=group.machines,
            shape=group.shape,
            attributes=group.attributes,
            controller=self._home.address,
            token=self._home.token(slice_.id),
        )

        async def create() -> None:
            # Its deadline may have passed while the platform was busy, and then no record would own the slice.
            if not self._is_creating(slice_):
                return
            try:
                await self._platform.create_slice(request)
            except Retry:
                raise
            except Error as error:
                if self._is_creating(slice_):
                    kind = next((kind for family, kind in _FAILURE_KINDS if isinstance(error, family)), None)
                    kind = kind or ScaleFailureKind.FAILED
                    self._fail(self._cluster.slices[slice_.id], error.sentence, kind)
            self.wake()

        self._effects.put_nowait(create)

    def _is_creating(self, slice_: Slice) -> bool:
        known = self._cluster.slices.get(slice_.id)
        return known is not None and known.state is SliceState.CREATING

    def _request_deletion(self, slice_: Slice) -> None:
        """Deletes a slice. Its tasks are retried only when the platform has removed it, because its machines may still run them."""

        async def delete() -> None:
            await self._platform.terminate(slice_.id)
            try:
                await self._platform.describe(slice_.id)
            except NotFound:
                if (known := self._cluster.slices.get(slice_.id)) is not None:
                    self._remove(known)
            self.wake()

        self._effects.put_nowait(delete)

    def _apply_status(self, status: SliceStatus) -> None:
        slice_ = self._cluster.slices.get(status.id)
        if slice_ is None:
            return
        if slice_.state is SliceState.DELETING:
            self._request_deletion(slice_)
        elif status.state is SliceState.BOOTSTRAPPING and slice_.state is SliceState.CREATING:
            self._move(slice_, SliceState.BOOTSTRAPPING)
        elif status.state is SliceState.FAILED and slice_.state is not SliceState.FAILED:
            # The loss of a slice that was ready does not predict whether another can be created.
            trouble = status.trouble or ScaleFailureKind.FAILED
            self._fail(slice_, status.message, None if slice_.state is SliceState.READY else trouble)

    def _update_slices(self, now: Instant) -> None:
        """Updates the states of slices. A slice is ready when all of its workers have joined."""
        joined: dict[SliceId, int] = {}
        busy: dict[SliceId, None] = {}
        open_to_work: dict[SliceId, None] = {}
        for worker in self._cluster.workers.values():
            joined[worker.slice] = joined.get(worker.slice, 0) + 1
            if self._cluster.attempts_on_worker[worker.id]:
                busy[worker.slice] = None
            if not worker.draining:
                open_to_work[worker.slice] = None
        for slice_ in self._managed_slices():
            whole = joined.get(slice_.id, 0) >= self._groups[slice_.group].machines
            if slice_.state is SliceState.BOOTSTRAPPING and whole:
                self._move(slice_, SliceState.READY)
                self._ready[slice_.id] = now
                self._troubles.pop(slice_.group, None)
            if slice_.state is SliceState.READY and not whole:
                # With a revoked token no worker can join, so there is nothing to wait for.
                self._short.setdefault(slice_.id, _NO_GRACE if slice_.revoked else now)
            else:
                self._short.pop(slice_.id, None)
            if slice_.id in joined and slice_.id not in open_to_work:
                self._drained.setdefault(slice_.id, now)
            else:
                self._drained.pop(slice_.id, None)
            if slice_.id in busy:
                self._idle.pop(slice_.id, None)
            else:
                self._idle.setdefault(slice_.id, now)

    def _managed_slices(self) -> list[Slice]:
        """Slices of existing groups. Slices of removed groups are deleted at the start."""
        return [slice_ for slice_ in self._cluster.slices.values() if slice_.group in self._groups]

    def _views(self) -> list[GroupView]:
        slices: dict[str, list[SliceView]] = {name: [] for name in self._groups}
        for slice_ in self._managed_slices():
            ready = self._ready.get(slice_.id, slice_.since if slice_.state is SliceState.READY else None)
            spans = (at.get(slice_.id) for at in (self._idle, self._short, self._drained))
            slices[slice_.group].append(SliceView(slice_.id, slice_.state, slice_.since, ready, *spans))
        return [
            GroupView(
                name=group.name,
                priority=group.priority,
                min_slices=group.min_slices,
                shape=worker_shape(group),
                patience=ScaleDelays(
                    group.scale_up_delay,
                    group.scale_down_delay,
                    group.startup_grace,
                    group.boot_timeout + group.init_timeout,
                    group.init_timeout,
                ),
                slices=slices[group.name],
                trouble=self._troubles.get(group.name),
            )
            for group in self._groups.values()
        ]

    def _fail(self, slice_: Slice, why: str, kind: ScaleFailureKind | None) -> None:
        log.warning("slice failed", slice=slice_.id, group=slice_.group, why=why)
        self._context.metrics.scaled(slice_.group, f"refused_{kind}" if kind else "lost")
        if kind is not None:
            before = self._troubles.get(slice_.group)
            self._troubles[slice_.group] = after_trouble(before, kind, self._context.clock.now())
        self._move(replace(slice_, message=why), SliceState.FAILED)

    def _remove(self, slice_: Slice) -> None:
        for worker in self._workers(slice_):
            self._reports.mark_worker_lost(worker, slice_.message)
        for since in (self._idle, self._ready, self._short, self._drained):
            since.pop(slice_.id, None)
        self._cluster.drop_slice(slice_.id)

    def _workers(self, slice_: Slice) -> list[Worker]:
        return [worker for worker in self._cluster.workers.values() if worker.slice == slice_.id]

    def _move(self, slice_: Slice, state: SliceState) -> Slice:
        SLICE.check(slice_.id, slice_.state, state)
        moved = replace(slice_, state=state, since=slice_.since)
        self._cluster.put_slice(moved)
        if state in (SliceState.FAILED, SliceState.DELETING):
            # It is being removed: its tasks may continue, but no new ones are assigned.
            for worker in self._workers(slice_):
                self._cluster.put_worker(replace(worker, draining=True))
        return moved


def worker_shape(group: ScaleGroup) -> WorkerShape:
    """Shape of the workers that a scale group can create."""
    return WorkerShape(group.shape, dict(group.attributes), group.machines, group.max_slices)
