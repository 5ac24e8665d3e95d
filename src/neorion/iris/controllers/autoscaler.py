"""The autoscaler: slices asked for, watched while they boot, given back when nobody needs them.

Intent first: a slice is a durable record before the platform hears of it, under the id that makes asking twice harmless.
Calls to the platform run beside the loop, one after the other per slice, and never hold up scheduling.
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

_LONG_AGO = Instant(0)
_TROUBLES: tuple[tuple[type[Error], ScaleFailureKind], ...] = (
    (QuotaNotSet, ScaleFailureKind.NO_QUOTA),
    (QuotaExceeded, ScaleFailureKind.QUOTA),
    (NoCapacity, ScaleFailureKind.NO_CAPACITY),
)

Effect = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ControllerEndpoint:
    """Where new workers find the controller, and what those of a slice show it."""

    address: str
    token: Callable[[SliceId], str]


class Autoscaler:
    """Keeps each scale group at the size that its demand, its limits and its troubles allow."""

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
        """After a start: what the book and the platform know of each other is brought together."""
        there = {seen.id: seen for seen in await self._platform.list_all_slices()}
        for piece in list(self._cluster.slices.values()):
            if piece.id not in there and piece.state is not SliceState.CREATING:
                # Whether somebody stopped it, or it was lost, nobody was there to see.
                for worker in self._workers(piece):
                    self._reports.let_go(worker, "gone before the controller came back")
                self._gone(piece)
            elif piece.state is SliceState.DELETING:
                self._give_back(piece)
            elif piece.group not in self._groups:
                log.info("slice given back", slice=piece.id, why=f"there is no group {piece.group} any more")
                self._give_back(self._move(piece, SliceState.DELETING))
            elif piece.id not in there:
                self._ask_for(piece)
            else:
                # What happened to it while nobody listened is not told again.
                self._heed(there[piece.id])
        for stray in there.keys() - self._cluster.slices.keys():
            log.warning("slice without a record", slice=stray)
            self._effects.put_nowait(lambda stray=stray: self._platform.terminate(stray))

    async def watch(self) -> None:
        """What the platform tells of slices, as it tells it."""
        async for seen in self._platform.changes():
            self._heed(seen)
            self.wake()

    async def work(self) -> None:
        """Carries out what was decided, beside everything else."""
        while True:
            effect = await self._effects.get()
            try:
                await effect()
            except Retry as error:
                log.warning("the platform is busy", why=error.sentence)
                pause = error.after.seconds if error.after else 1.0
                asyncio.get_running_loop().call_later(pause, self._effects.put_nowait, effect)

    async def tick(self) -> None:
        now = self._context.clock.now()
        self._welcome(now)
        plan = self._scheduler.plan
        demand, promised = (plan.demand, plan.promised) if plan is not None else ((), ())
        decided = autoscale(self._views(), demand, now, promised)
        self._context.reasons.scaling = decided.reasons
        self.on_pass()
        asked = self._carry_out(decided)
        await self._context.journal.wait_durable()
        for piece in asked:
            self._ask_for(piece)
        if decided.wake_at is not None:
            asyncio.get_running_loop().call_later(decided.wake_at.since(now).seconds, self.wake)

    def _carry_out(self, plan: ScalePlan) -> list[Slice]:
        asked = [self._create(create.group) for create in plan.creates for _ in range(create.slices)]
        for piece in map(self._cluster.slices.__getitem__, plan.fails):
            if piece.state is SliceState.READY:
                self._fail(piece, "a worker of it is gone and did not come back", None)
            else:
                self._fail(piece, "its workers did not join in time", ScaleFailureKind.FAILED)
        for delete in plan.deletes:
            log.info("slice given back", slice=delete.slice, why=delete.cause)
            self._context.metrics.scaled(delete.group, f"delete_{delete.cause}")
            self._give_back(self._move(self._cluster.slices[delete.slice], SliceState.DELETING))
        return asked

    def _create(self, group: str) -> Slice:
        piece = Slice(self._context.ids.new(SliceId), group, self._context.clock.now())
        self._cluster.put_slice(piece)
        log.info("slice asked for", slice=piece.id, group=group)
        self._context.metrics.scaled(group, "create")
        return piece

    def _ask_for(self, piece: Slice) -> None:
        group = self._groups[piece.group]
        order = SliceRequest(
            id=piece.id,
            group=piece.group,
            machines=group.machines,
            shape=group.shape,
            attributes=group.attributes,
            controller=self._home.address,
            token=self._home.token(piece.id),
        )

        async def ask() -> None:
            # While the platform was busy its time may have run out: nobody would know of it any more.
            if not self._still_wanted(piece):
                return
            try:
                await self._platform.create_slice(order)
            except Retry:
                raise
            except Error as error:
                if self._still_wanted(piece):
                    kind = next((kind for family, kind in _TROUBLES if isinstance(error, family)), None)
                    kind = kind or ScaleFailureKind.FAILED
                    self._fail(self._cluster.slices[piece.id], error.sentence, kind)
            self.wake()

        self._effects.put_nowait(ask)

    def _still_wanted(self, piece: Slice) -> bool:
        known = self._cluster.slices.get(piece.id)
        return known is not None and known.state is SliceState.CREATING

    def _give_back(self, piece: Slice) -> None:
        """Until the platform knows nothing of it any more its machines may run tasks, so these are not tried elsewhere."""

        async def give_back() -> None:
            await self._platform.terminate(piece.id)
            try:
                await self._platform.describe(piece.id)
            except NotFound:
                if (known := self._cluster.slices.get(piece.id)) is not None:
                    self._gone(known)
            self.wake()

        self._effects.put_nowait(give_back)

    def _heed(self, seen: SliceStatus) -> None:
        piece = self._cluster.slices.get(seen.id)
        if piece is None:
            return
        if piece.state is SliceState.DELETING:
            self._give_back(piece)
        elif seen.state is SliceState.BOOTSTRAPPING and piece.state is SliceState.CREATING:
            self._move(piece, SliceState.BOOTSTRAPPING)
        elif seen.state is SliceState.FAILED and piece.state is not SliceState.FAILED:
            # One that has served and is lost says nothing about whether another can be had.
            trouble = seen.trouble or ScaleFailureKind.FAILED
            self._fail(piece, seen.message, None if piece.state is SliceState.READY else trouble)

    def _welcome(self, now: Instant) -> None:
        """A slice is ready when all of its workers have joined."""
        joined: dict[SliceId, int] = {}
        busy: dict[SliceId, None] = {}
        open_to_work: dict[SliceId, None] = {}
        for worker in self._cluster.workers.values():
            joined[worker.slice] = joined.get(worker.slice, 0) + 1
            if self._cluster.attempts_on_worker[worker.id]:
                busy[worker.slice] = None
            if not worker.draining:
                open_to_work[worker.slice] = None
        for piece in self._wanted():
            whole = joined.get(piece.id, 0) >= self._groups[piece.group].machines
            if piece.state is SliceState.BOOTSTRAPPING and whole:
                self._move(piece, SliceState.READY)
                self._ready[piece.id] = now
                self._troubles.pop(piece.group, None)
            if piece.state is SliceState.READY and not whole:
                # With a token that was taken back nobody joins: there is nothing to wait for.
                self._short.setdefault(piece.id, _LONG_AGO if piece.revoked else now)
            else:
                self._short.pop(piece.id, None)
            if piece.id in joined and piece.id not in open_to_work:
                self._drained.setdefault(piece.id, now)
            else:
                self._drained.pop(piece.id, None)
            if piece.id in busy:
                self._idle.pop(piece.id, None)
            else:
                self._idle.setdefault(piece.id, now)

    def _wanted(self) -> list[Slice]:
        """Slices of groups that there are; those of others are being given back since the start."""
        return [piece for piece in self._cluster.slices.values() if piece.group in self._groups]

    def _views(self) -> list[GroupView]:
        slices: dict[str, list[SliceView]] = {name: [] for name in self._groups}
        for piece in self._wanted():
            ready = self._ready.get(piece.id, piece.since if piece.state is SliceState.READY else None)
            spans = (at.get(piece.id) for at in (self._idle, self._short, self._drained))
            slices[piece.group].append(SliceView(piece.id, piece.state, piece.since, ready, *spans))
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

    def _fail(self, piece: Slice, why: str, kind: ScaleFailureKind | None) -> None:
        log.warning("slice failed", slice=piece.id, group=piece.group, why=why)
        self._context.metrics.scaled(piece.group, f"refused_{kind}" if kind else "lost")
        if kind is not None:
            before = self._troubles.get(piece.group)
            self._troubles[piece.group] = after_trouble(before, kind, self._context.clock.now())
        self._move(replace(piece, message=why), SliceState.FAILED)

    def _gone(self, piece: Slice) -> None:
        for worker in self._workers(piece):
            self._reports.lose(worker, piece.message)
        for since in (self._idle, self._ready, self._short, self._drained):
            since.pop(piece.id, None)
        self._cluster.drop_slice(piece.id)

    def _workers(self, piece: Slice) -> list[Worker]:
        return [worker for worker in self._cluster.workers.values() if worker.slice == piece.id]

    def _move(self, piece: Slice, state: SliceState) -> Slice:
        SLICE.check(piece.id, piece.state, state)
        moved = replace(piece, state=state, since=piece.since)
        self._cluster.put_slice(moved)
        if state in (SliceState.FAILED, SliceState.DELETING):
            # It goes: what runs there may run on for as long as it can, and nothing more is begun.
            for worker in self._workers(piece):
                self._cluster.put_worker(replace(worker, draining=True))
        return moved


def worker_shape(group: ScaleGroup) -> WorkerShape:
    """The workers that a scale group can bring."""
    return WorkerShape(group.shape, dict(group.attributes), group.machines, group.max_slices)
