"""What simulations found, each in its smallest form."""

from dataclasses import replace as changed

import pytest
from msgspec.structs import replace

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.navarch.decide import AdvanceRepair, AssignReplacement, MoveNode, ProvisionNode, plan, violations
from neorion.navarch.decide.budget import admit
from neorion.navarch.model import Health, HoldReason, Node, NodeHeartbeat, NodeId, NodeState, RepairStep
from neorion.navarch.model.spec import Budget, CommonCause, CountOrPercent, HealthRules, Scaling, Timing
from neorion.navarch.testing import NOW, ailment, later, node, nodes, pool_view, repair, spec

ONE = HealthRules(budgets=(Budget(CountOrPercent(count=1)),), cause=CommonCause(least=1_000, share=100))


def sick(number: int, state: NodeState = NodeState.ACTIVE, remedy: Remedy = Remedy.RESET_GPU) -> Node:
    return node(number, state, ailment=ailment(remedy=remedy), health=Health.UNHEALTHY)


def test_a_node_left_out_of_service_by_a_failed_treatment_counts_against_the_budget():
    failed, waiting = sick(1, NodeState.CORDONED), sick(2)
    over = repair(failed, RepairStep.FAILED, remedy=Remedy.RESET_GPU, ended=NOW)
    view = pool_view(spec(3, health=ONE), [failed, waiting, node(3)], [over, repair(waiting)])
    decided = plan(view, NOW)
    assert [hold.code for hold in decided.holds if hold.subject == waiting.id] == [HoldReason.BUDGET]
    assert not [one for one in decided.actions if isinstance(one, MoveNode) and one.node == waiting.id]


@pytest.mark.fault(35)
def test_nodes_that_the_scheduler_never_takes_cost_no_node_and_buy_no_more():
    useless = [node(number, NodeState.UNCORDONING, served=None) for number in (2, 3, 4)]
    ill = sick(1, NodeState.CORDONED, Remedy.REPLACE)
    work = repair(ill, RepairStep.BUYING, successor=useless[0].id)
    decided = plan(pool_view(spec(3), [ill, *useless], [work]), NOW)
    assert [one for one in decided.actions if isinstance(one, ProvisionNode | MoveNode)] == []


@pytest.mark.parametrize("state", [NodeState.UNCORDONING, NodeState.CORDONED, NodeState.DRAINED])
def test_a_node_on_which_nothing_is_placed_yet_counts_against_the_budget(state: NodeState):
    """Its repair is over; that the scheduler opened it again has not been seen."""
    closed, waiting = node(1, state, served=NOW), sick(2)
    view = pool_view(spec(3, health=ONE), [closed, waiting, node(3)], [repair(waiting)])
    assert [hold.code for hold in plan(view, NOW).holds if hold.subject == waiting.id] == [HoldReason.BUDGET]


def test_two_nodes_that_are_down_do_not_wait_for_each_other():
    down = [sick(1, NodeState.CORDONED, Remedy.REPLACE), sick(2, NodeState.CORDONED, Remedy.REPLACE)]
    view = pool_view(spec(3, health=ONE), [*down, node(3)], [repair(one) for one in down])
    begun = [one for one in plan(view, NOW).actions if isinstance(one, AdvanceRepair)]
    assert [one.to for one in begun] == [RepairStep.CORDONING]


def test_successors_beside_the_old_nodes_do_not_enlarge_a_share():
    rules = HealthRules(budgets=(Budget(CountOrPercent(percent=10)),))
    ill = sick(1)
    at_work = [repair(sick(number), RepairStep.DRAINING) for number in (2, 3)]
    view = pool_view(spec(29, health=rules), [ill, *nodes(31)[1:]], at_work)
    hold = admit(repair(ill), ill, view, at_work, NOW)
    assert hold is not None
    assert hold.most == 2


def test_what_befell_a_node_while_it_waited_outdoes_what_it_waited_for():
    worse = sick(1, remedy=Remedy.REPLACE)
    view = pool_view(spec(2, health=ONE), [worse, node(2)], [repair(worse, remedy=Remedy.RESET_GPU)])
    assert [one.to for one in plan(view, NOW).actions if isinstance(one, AdvanceRepair)] == [
        RepairStep.CANCELLED
    ]


def test_a_rebooted_node_serves_when_its_agent_says_that_it_is_fit():
    treated = node(1, NodeState.VERIFYING, since=later(-300))
    work = repair(treated, RepairStep.VERIFYING, remedy=Remedy.REBOOT)
    view = pool_view(spec(1), [treated], [work])
    assert plan(view, NOW).actions == ()
    fit = changed(view, heartbeats={treated.id: NodeHeartbeat(heard=NOW, tested=True)})
    assert MoveNode(treated.id, NodeState.UNCORDONING, "verified") in plan(fit, NOW).actions


def test_a_moment_that_has_come_is_not_waited_for_again():
    """At the very moment nothing is left to wait for but what lies ahead: a wake for now would be one without end."""
    timing = Timing(verify=Duration.of(minutes=1))
    held = node(1, NodeState.VERIFYING, since=later(-60) - Duration.of(ms=1), held=True)
    wake = plan(pool_view(spec(1, timing=timing), [held]), NOW).wake_at
    assert wake is not None
    assert wake > NOW


def test_a_node_that_counts_as_unhealthy_although_nothing_ails_it_is_a_violation():
    healed = replace(node(1), health=Health.UNHEALTHY)
    assert [one.code for one in violations(pool_view(spec(1), [healed]))] == ["navarch.sick_of_nothing"]


def test_a_successor_that_did_not_come_up_makes_the_pool_no_smaller():
    """Bought again for the repair, not for the pool as well: one too many would cost a healthy node its place."""
    ill = sick(1, NodeState.CORDONED, Remedy.REPLACE)
    waits = repair(ill, RepairStep.BUYING, successor=NodeId("node-gone"))
    decided = plan(pool_view(spec(3), [ill, node(2), node(3)], [waits]), NOW)
    assert [one.repair for one in decided.actions if isinstance(one, ProvisionNode)] == [waits.id]
    assert AssignReplacement(waits.id, NodeId(""), "its successor did not come up") in decided.actions


@pytest.mark.parametrize(
    ("step", "before"),
    [(RepairStep.CORDONING, ""), (RepairStep.BUYING, "node-gone")],
    ids=["its cordon is known", "its successor did not come up"],
)
def test_the_last_place_is_the_successors_before_the_pools_own(step: RepairStep, before: str):
    """The pool's own order in it left no room for a successor, and the old node was drained with nobody beside it."""
    ill = sick(1, NodeState.CORDONED, Remedy.REPLACE)
    waits = repair(ill, step, successor=NodeId(before))
    short = spec(3, scaling=Scaling(least=3, most=3, surge=CountOrPercent(count=0)))
    decided = plan(pool_view(short, [ill, node(2)], [waits]), NOW)
    assert [one.repair for one in decided.actions if isinstance(one, ProvisionNode)] == [waits.id]


@pytest.mark.parametrize(
    ("step", "before"),
    [(RepairStep.CORDONING, ""), (RepairStep.BUYING, ""), (RepairStep.BUYING, "node-gone")],
)
def test_where_a_spare_takes_the_place_no_successor_is_bought(step: RepairStep, before: str):
    ill, spare = sick(1, NodeState.CORDONED, Remedy.REPLACE), node(2, NodeState.SPARE, spare=True)
    waits = repair(ill, step, successor=NodeId(before))
    kept = spec(1, scaling=Scaling(least=1, most=1, spares=1))
    decided = plan(pool_view(kept, [ill, spare], [waits]), NOW)
    assert [one for one in decided.actions if isinstance(one, ProvisionNode)] == []
    assert [one.node for one in decided.actions if isinstance(one, AssignReplacement)][-1:] == [spare.id]
