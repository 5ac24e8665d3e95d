"""How many slices each scale group should have: enough for its least and for what found no room, and no more than its most.

Demand goes to the first group, by priority, that makes workers for it and may grow; a group that may not passes it on. What is
already on its way serves demand before anything is bought. Idle slices go after a while, the longest idle first.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neorion.iris.decide.gang_supply import Basket, GangSupply, lots_of
from neorion.iris.decide.plan import UnmetDemand
from neorion.iris.decide.scale_group import ScaleGroupState, paused_until
from neorion.iris.decide.worker_table import SLICE, WORKER
from neorion.iris.model import GroupView, JobId, PendingCode, PendingReason, Placement, Resources, SliceId
from neorion.keel.base import Instant


class DeleteCause(StrEnum):
    """Why a slice goes."""

    IDLE = "idle"
    DRAINED = "drained"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Create:
    """Ask for so many slices of this group."""

    group: str
    slices: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Give this slice back."""

    group: str
    slice: SliceId
    cause: DeleteCause


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """`fails` took longer to boot, or to be whole again, than they may and count as failed from now on. `reasons` say what demand waits for."""

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
    """`promised` are slices on which the same tick's schedule gave somebody a place: they are not idle."""
    work = _Scaling(
        [ScaleGroupState(view, now) for view in sorted(groups, key=lambda view: (view.priority, view.name))],
        now,
    )
    work.keep_least()
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
        # Per kind of task, the groups that may serve it: in the order in which they are bought from, and filled.
        self._suited: dict[
            tuple[Resources, Placement], tuple[list[ScaleGroupState], list[ScaleGroupState]]
        ] = {}

    def keep_least(self) -> None:
        for group in self.groups:
            lacks = group.view.min_slices - group.live
            if lacks > 0:
                group.create(min(lacks, group.may_create()))
            if group.live < group.view.min_slices:
                self._wake_after_trouble(group)

    def serve(self, each: UnmetDemand) -> None:
        """Gives demand its part of what is on its way, in whichever group, and asks for more only for the rest."""
        gang, left = each.placement.gang, each.tasks
        suited, filled = self._groups_for(each)
        if gang not in ("", SLICE, WORKER):
            self._serve_across(each, suited, filled)
            return
        for group in filled:
            served = group.bins.fill(each.resources, gang, left)
            left -= served
            group.wanted |= served > 0
            if not left:
                self._comes(each, group)
                return
        self._buy(each, left, suited)

    def _buy(self, each: UnmetDemand, left: int, suited: Sequence[ScaleGroupState]) -> None:
        gang = each.placement.gang
        obstacle: PendingReason | None = None
        for group in suited:
            wanted = group.bins.missing(each.resources, gang, left)
            if wanted is None or (gang and wanted > group.view.shape.slices):
                continue
            group.wanted = True
            may = group.may_create()
            if not may:
                obstacle = obstacle or group.obstacle()
                self._wake_after_trouble(group)
                continue
            if self._unripe(each, group):
                obstacle = _too_young_for(group)
                break
            group.create(min(wanted, may))
            left -= group.bins.fill(each.resources, gang, left)
            if not left:
                self._comes(each, group)
                return
            obstacle = obstacle or group.obstacle()
        self.reasons[each.job] = obstacle or PendingReason(PendingCode.NO_GROUP)

    def _serve_across(
        self, each: UnmetDemand, suited: Sequence[ScaleGroupState], filled: Sequence[ScaleGroupState]
    ) -> None:
        """A gang whose slices share an attribute is served whole, beside what is free now where it would run."""
        for lot in lots_of(filled, each.placement.gang):
            if lot.fill(each.resources, each.tasks - each.there.get(lot.value, 0)):
                self._comes_across(each, lot, suited)
                return
        obstacle: PendingReason | None = None
        begun: Basket | None = None
        for lot in lots_of(suited, each.placement.gang):
            lacks = each.tasks - each.there.get(lot.value, 0)
            if not lot.could_hold(each.resources, lacks):
                continue
            for group in lot.groups:
                group.wanted = True
            basket = lot.basket(each.resources, lacks)
            if basket is None:
                obstacle = obstacle or lot.obstacle()
                begun = begun or lot.part(each.resources, each.tasks)
                for group in lot.groups:
                    self._wake_after_trouble(group)
                continue
            if young := self._first_unripe(each, basket):
                obstacle = _too_young_for(young)
                break
            _create(basket)
            lot.fill(each.resources, lacks)
            self._comes_across(each, lot, suited)
            return
        if begun and not self._first_unripe(each, begun):
            _create(begun)
        self.reasons[each.job] = obstacle or PendingReason(PendingCode.NO_GROUP)

    def _first_unripe(self, each: UnmetDemand, basket: Basket) -> ScaleGroupState | None:
        return next((group for group, _ in basket if self._unripe(each, group)), None)

    def _unripe(self, each: UnmetDemand, group: ScaleGroupState) -> bool:
        """Whether the demand is too young for this group to grow."""
        ripe = each.since + group.view.patience.up
        if ripe <= self._now:
            return False
        self._wakes.append(ripe)
        return True

    def deletes(self, promised: Collection[SliceId]) -> list[Delete]:
        found: list[Delete] = []
        for group in self.groups:
            name = group.view.name
            found += [Delete(name, each.id, DeleteCause.FAILED) for each in group.failed]
            found += [Delete(name, each, DeleteCause.DRAINED) for each in self._emptied(group)]
            # A group that somebody waits for gives nothing back: it would only be bought again.
            if not group.wanted:
                found += [Delete(name, each, DeleteCause.IDLE) for each in self._idle(group, promised)]
        return found

    def wake_at(self) -> Instant | None:
        deadlines = [deadline for group in self.groups for _, deadline in group.deadlines()]
        return min((wake for wake in (*self._wakes, *deadlines) if wake > self._now), default=None)

    def _emptied(self, group: ScaleGroupState) -> list[SliceId]:
        """Drained slices on which nothing runs any more serve nobody, whoever waits; for a while they may be wanted back."""
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

    def _comes(self, each: UnmetDemand, group: ScaleGroupState) -> None:
        self.reasons[each.job] = PendingReason(
            PendingCode.BOOTING, best=group.coming, subject=group.view.name
        )

    def _comes_across(self, each: UnmetDemand, lot: GangSupply, suited: Sequence[ScaleGroupState]) -> None:
        """Whatever has the gang's value is wanted: what is free there now is counted on."""
        for group in suited:
            group.wanted |= group.view.shape.attributes[each.placement.gang] == lot.value
        self._comes(each, next((group for group in lot.groups if group.coming), lot.groups[0]))

    def _wake_after_trouble(self, group: ScaleGroupState) -> None:
        if group.view.trouble is not None:
            self._wakes.append(paused_until(group.view.trouble))


def _create(basket: Basket) -> None:
    for group, slices in basket:
        group.create(slices)


def _too_young_for(group: ScaleGroupState) -> PendingReason:
    return PendingReason(PendingCode.GROUP_DELAY, group.view.patience.up.ns, subject=group.view.name)


def _gpus(group: ScaleGroupState) -> int:
    """As the scheduler will, tasks without GPUs leave slices with GPUs to others."""
    return group.view.shape.total.gpus
