"""Budgets of every form."""

from datetime import timezone

import pytest

from neorion.keel.base import Duration
from neorion.navarch.decide import AdvanceRepair, plan
from neorion.navarch.decide.budget import admit, budgets_used
from neorion.navarch.decide.window import is_open
from neorion.navarch.model import HoldReason, NodeState, RepairStep
from neorion.navarch.model.record import Placement
from neorion.navarch.model.spec import Budget, CountOrPercent, HealthRules, Window
from neorion.navarch.testing import NOW, ailment, later, node, nodes, pool_view, repair, spec

UTC = timezone.utc  # noqa: UP017 -- a plain zone, no clock
ALWAYS = frozenset(range(7))


def held(budget: Budget, others: int = 1, *, zone: str = "a", signature: str = "xid 79"):
    members = [node(n, place=Placement("fake", "t", "r", "a" if n % 2 else "b")) for n in range(1, 11)]
    at_work = [
        repair(members[n], RepairStep.DRAINING, times={"cordoning": later(-60)}) for n in range(others)
    ]
    candidate = node(99, place=Placement("fake", "t", "r", zone))
    view = pool_view(spec(11, health=HealthRules(budgets=(budget,))), [*members, candidate], at_work)
    return admit(repair(candidate, signature=signature), candidate, view, at_work, NOW)


@pytest.mark.parametrize(
    ("budget", "others", "waits"),
    [
        (Budget(CountOrPercent(count=1)), 0, False),
        (Budget(CountOrPercent(count=1)), 1, True),
        (Budget(CountOrPercent(percent=20)), 1, False),
        (Budget(CountOrPercent(percent=20)), 2, True),
        (Budget(CountOrPercent(percent=1)), 0, False),  # never rounded down to nothing
        (Budget(CountOrPercent(count=0)), 0, True),
        (Budget(CountOrPercent(percent=0)), 0, True),
        (Budget(CountOrPercent(count=1), reasons=("thermal",)), 5, False),
        (Budget(CountOrPercent(count=1), zones=("b",)), 5, False),
        (Budget(CountOrPercent(count=2), each_zone=True), 3, True),
        (Budget(CountOrPercent(count=2), each_zone=True), 2, False),
    ],
)
def test_a_budget_counts_what_it_is_about(budget: Budget, others: int, *, waits: bool):
    hold = held(budget, others)
    assert (hold is not None) is waits
    if hold is not None:
        assert hold.code is HoldReason.BUDGET
        assert "out of service" in hold.sentence


def test_a_rate_counts_what_began_lately():
    assert held(Budget(CountOrPercent(count=1), per=Duration.of(hours=1))) is not None
    assert held(Budget(CountOrPercent(count=1), per=Duration.of(seconds=30))) is None


def test_a_rate_counts_what_the_same_decision_lets_begin():
    sick = [node(number, ailment=ailment()) for number in range(1, 6)]
    rate = Budget(CountOrPercent(count=2), per=Duration.of(hours=1))
    wanted = spec(50, health=HealthRules(budgets=(rate,)))
    well = [node(number) for number in range(6, 51)]
    decided = plan(pool_view(wanted, [*sick, *well], [repair(one) for one in sick]), NOW)
    begun = [one for one in decided.actions if isinstance(one, AdvanceRepair)]
    assert [one.to for one in begun] == [RepairStep.CORDONING] * 2
    assert [hold.code for hold in decided.holds] == [HoldReason.BUDGET_RATE] * 3


def test_a_node_that_a_failed_treatment_left_down_is_no_repair_that_began():
    down = node(1, NodeState.CORDONED, ailment=ailment())
    sick = node(2, ailment=ailment())
    rate = Budget(CountOrPercent(count=1), per=Duration.of(hours=1))
    wanted = spec(50, health=HealthRules(budgets=(rate,)))
    well = [node(number) for number in range(3, 51)]
    decided = plan(pool_view(wanted, [down, sick, *well], [repair(sick)]), NOW)
    begun = [one for one in decided.actions if isinstance(one, AdvanceRepair)]
    assert [one.to for one in begun] == [RepairStep.CORDONING]


def test_a_budget_holds_only_while_its_window_is_open():
    # NOW is Thursday, midnight in UTC.
    night, day = Window(ALWAYS, 22 * 60, 6 * 60, UTC), Window(ALWAYS, 8 * 60, 18 * 60, UTC)
    assert held(Budget(CountOrPercent(count=1), windows=(night,))) is not None
    assert held(Budget(CountOrPercent(count=1), windows=(day,))) is None


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins():
    wednesday, thursday = (Window(frozenset({day}), 22 * 60, 6 * 60, UTC) for day in (2, 3))
    assert is_open(wednesday, NOW)
    assert not is_open(thursday, NOW)
    assert is_open(thursday, later(23 * 3_600))
    assert is_open(thursday, later(29 * 3_600))
    assert not is_open(thursday, later(30 * 3_600))


def test_what_is_told_of_a_budget_is_what_it_allows():
    """Nodes that stand beside those they replace make the pool no larger, for the metric neither."""
    view = pool_view(spec(10, health=HealthRules(budgets=(Budget(CountOrPercent(percent=10)),))), nodes(20))
    assert [use.most for use in budgets_used(view, NOW)] == [1]
