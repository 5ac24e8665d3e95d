"""Autoscaling: the number of slices of each scale group, from its minimum and maximum and from unmet demand.

Demand goes to the first group, by priority, that offers suitable workers and may grow. Slices that are already
booting serve demand before new ones are created. Idle slices are deleted after a delay, the longest idle first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neorion.iris.decide.gang_supply import Basket, GangSupply, gang_supplies
from neorion.iris.decide.plan import UnmetDemand
from neorion.iris.decide.scale_group import ScaleGroupState, paused_until
from neorion.iris.decide.worker_table import SLICE, WORKER
from neorion.iris.model import GroupView, JobId, PendingCode, PendingReason, Placement, Resources, SliceId
from neorion.keel.base import Instant


class DeleteCause(StrEnum):
    """Reason to delete a slice."""

    IDLE = "idle"
    DRAINED = "drained"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Create:
    """Create this many slices in this group."""

    group: str
    slices: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this slice."""

    group: str
    slice: SliceId
    cause: DeleteCause


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """Plan of one autoscaling pass. `fails` are slices past their boot or recovery deadline, to be marked FAILED.

    `reasons` state what each job with unmet demand waits for.
    """

    creates: Sequence[Create]
    fails: Sequence[SliceId]
    deletes: Sequence[Delete]
    reasons: Mapping[JobId, PendingReason]
    wake_at: Instant | None


def autoscale(
    groups: Sequence[GroupView],
    demand: Sequence[UnmetDemand],
    now: Instant,
    promised: Collection[SliceId] = (),
) -> ScalePlan:
    """Plans the changes of all groups. `promised` slices have work in the same tick's schedule, so they are not idle."""
    work = _Scaling(
        [ScaleGroupState(view, now) for view in sorted(groups, key=lambda view: (view.priority, view.name))],
        now,
    )
    work.create_minimum()
    for each in demand:
        work.serve(each)
    deletes = work.deletes(promised)
    return ScalePlan(
        [Create(group.view.name, group.created) for group in work.groups if group.created],
        [each.id for group in work.groups for each in group.overdue],
        deletes,
        work.reasons,
        work.wake_at(),
    )


class _Scaling:
    def __init__(self, groups: Sequence[ScaleGroupState], now: Instant) -> None:
        self.groups = groups
        self.reasons: dict[JobId, PendingReason] = {}
        self._now = now
        self._wakes: list[Instant] = []
        # Per kind of task, the groups that may serve it: in the order of creation, and in the order of filling.
        self._suited: dict[
            tuple[Resources, Placement], tuple[list[ScaleGroupState], list[ScaleGroupState]]
        ] = {}

    def create_minimum(self) -> None:
        for group in self.groups:
            lacks = group.view.min_slices - group.live
            if lacks > 0:
                group.create(min(lacks, group.may_create()))
            if group.live < group.view.min_slices:
                self._wake_after_pause(group)

    def serve(self, each: UnmetDemand) -> None:
        """Serves demand from slices that are on their way in any group, and creates slices only for the rest."""
        gang, left = each.placement.gang, each.tasks
        suited, filled = self._groups_for(each)
        if gang not in ("", SLICE, WORKER):
            self._serve_across(each, suited, filled)
            return
        for group in filled:
            served = group.bins.fill(each.resources, gang, left)
            left -= served
            group.needed |= served > 0
            if not left:
                self._set_booting_reason(each, group)
                return
        self._create_for(each, left, suited)

    def _create_for(self, each: UnmetDemand, left: int, suited: Sequence[ScaleGroupState]) -> None:
        gang = each.placement.gang
        obstacle: PendingReason | None = None
        for group in suited:
            missing = group.bins.missing(each.resources, gang, left)
            if missing is None or (gang and missing > group.view.shape.slices):
                continue
            group.needed = True
            may = group.may_create()
            if not may:
                obstacle = obstacle or group.obstacle()
                self._wake_after_pause(group)
                continue
            if self._must_wait(each, group):
                obstacle = _delayed_by(group)
                break
            group.create(min(missing, may))
            left -= group.bins.fill(each.resources, gang, left)
            if not left:
                self._set_booting_reason(each, group)
                return
            obstacle = obstacle or group.obstacle()
        self.reasons[each.job] = obstacle or PendingReason(PendingCode.NO_GROUP)

    def _serve_across(
        self, each: UnmetDemand, suited: Sequence[ScaleGroupState], filled: Sequence[ScaleGroupState]
    ) -> None:
        """Serves a gang across slices completely or not at all, in addition to the free room where it would run."""
        for supply in gang_supplies(filled, each.placement.gang):
            if supply.fill(each.resources, each.tasks - each.there.get(supply.value, 0)):
                self._set_gang_booting_reason(each, supply, suited)
                return
        obstacle: PendingReason | None = None
        begun: Basket | None = None
        for supply in gang_supplies(suited, each.placement.gang):
            lacks = each.tasks - each.there.get(supply.value, 0)
            if not supply.could_hold(each.resources, lacks):
                continue
            for group in supply.groups:
                group.needed = True
            basket = supply.basket(each.resources, lacks)
            if basket is None:
                obstacle = obstacle or supply.obstacle()
                begun = begun or supply.part(each.resources, each.tasks)
                for group in supply.groups:
                    self._wake_after_pause(group)
                continue
            if delaying := self._first_that_must_wait(each, basket):
                obstacle = _delayed_by(delaying)
                break
            _create(basket)
            supply.fill(each.resources, lacks)
            self._set_gang_booting_reason(each, supply, suited)
            return
        if begun and not self._first_that_must_wait(each, begun):
            _create(begun)
        self.reasons[each.job] = obstacle or PendingReason(PendingCode.NO_GROUP)

    def _first_that_must_wait(self, each: UnmetDemand, basket: Basket) -> ScaleGroupState | None:
        return next((group for group, _ in basket if self._must_wait(each, group)), None)

    def _must_wait(self, each: UnmetDemand, group: ScaleGroupState) -> bool:
        """True while the demand is newer than the group's scale-up delay."""
        ripe = each.since + group.view.patience.up
        if ripe <= self._now:
            return False
        self._wakes.append(ripe)
        return True

    def deletes(self, promised: Collection[SliceId]) -> list[Delete]:
        deletes: list[Delete] = []
        for group in self.groups:
            name = group.view.name
            deletes += [Delete(name, each.id, DeleteCause.FAILED) for each in group.failed]
            deletes += [Delete(name, each, DeleteCause.DRAINED) for each in self._emptied(group)]
            # A group with unmet demand deletes nothing, because the slices would be created again.
            if not group.needed:
                deletes += [Delete(name, each, DeleteCause.IDLE) for each in self._idle(group, promised)]
        return deletes

    def wake_at(self) -> Instant | None:
        deadlines = [deadline for group in self.groups for _, deadline in group.deadlines()]
        return min((wake for wake in (*self._wakes, *deadlines) if wake > self._now), default=None)

    def _emptied(self, group: ScaleGroupState) -> list[SliceId]:
        """Drained slices that have been empty for the scale-down delay, within which they may be returned to use."""
        due: list[SliceId] = []
        for each in group.drained:
            if each.drained is None or each.idle is None:
                continue
            ripe = max(each.drained, each.idle) + group.view.patience.down
            if ripe > self._now:
                self._wakes.append(ripe)
            else:
                due.append(each.id)
        return due

    def _idle(self, group: ScaleGroupState, promised: Collection[SliceId]) -> list[SliceId]:
        patience = group.view.patience
        spare = group.live - group.view.min_slices
        due: list[SliceId] = []
        idle = [
            (each.idle, each) for each in group.ready if each.idle is not None and each.id not in promised
        ]
        for since, each in sorted(idle, key=lambda pair: (pair[0].ns, pair[1].id)):
            ripe = max(since + patience.down, (each.ready or each.created) + patience.grace)
            if len(due) >= spare:
                break
            if ripe > self._now:
                self._wakes.append(ripe)
            else:
                due.append(each.id)
        return due

    def _groups_for(self, each: UnmetDemand) -> tuple[list[ScaleGroupState], list[ScaleGroupState]]:
        key = (each.resources, each.placement)
        found = self._suited.get(key)
        if found is None:
            suited = [group for group in self.groups if group.bins.suits(*key)]
            found = self._suited[key] = (suited, sorted(suited, key=_gpus))
        return found

    def _set_booting_reason(self, each: UnmetDemand, group: ScaleGroupState) -> None:
        self.reasons[each.job] = PendingReason(
            PendingCode.BOOTING, best=group.coming, subject=group.view.name
        )

    def _set_gang_booting_reason(
        self, each: UnmetDemand, supply: GangSupply, suited: Sequence[ScaleGroupState]
    ) -> None:
        """Keeps every group with the gang's value, because the gang also counts on what is free there."""
        for group in suited:
            group.needed |= group.view.shape.attributes[each.placement.gang] == supply.value
        self._set_booting_reason(
            each, next((group for group in supply.groups if group.coming), supply.groups[0])
        )

    def _wake_after_pause(self, group: ScaleGroupState) -> None:
        if group.view.trouble is not None:
            self._wakes.append(paused_until(group.view.trouble))


def _create(basket: Basket) -> None:
    for group, slices in basket:
        group.create(slices)


def _delayed_by(group: ScaleGroupState) -> PendingReason:
    return PendingReason(PendingCode.GROUP_DELAY, group.view.patience.up.ns, subject=group.view.name)


def _gpus(group: ScaleGroupState) -> int:
    """Sort key: tasks without GPUs fill groups without GPUs first, as in the scheduler."""
    return group.view.shape.total.gpus
