"""Repairs: who needs one, who may begin, and the safe order of the steps."""

from dataclasses import replace as changed
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.navarch.decide import AdvanceRepair, AssignReplacement, MoveNode, OpenRepair, ProvisionNode, plan
from neorion.navarch.decide.budget import begun
from neorion.navarch.model import (
    FailureStreak,
    Health,
    HoldReason,
    Node,
    NodeId,
    NodeState,
    Origin,
    PoolState,
    PoolView,
    RepairStep,
)
from neorion.navarch.model.spec import (
    Budget,
    CommonCause,
    CountOrPercent,
    HealthRules,
    Offer,
    RepairLadder,
    Scaling,
    SpendLimits,
)
from neorion.navarch.testing import NOW, ailment, later, node, nodes, pool_view, repair, spec


def rules(**changes: object) -> HealthRules:
    usual = HealthRules(budgets=(Budget(CountOrPercent(count=1)),), cause=CommonCause(least=1_000, share=100))
    return changed(usual, **changes)


def sick(number: int = 1, **changes: Any):
    return node(number, ailment=ailment(), health=Health.UNHEALTHY, **changes)


def steps(view: PoolView) -> list[RepairStep]:
    return [action.to for action in plan(view, NOW).actions if isinstance(action, AdvanceRepair)]


def codes(view: PoolView) -> list[HoldReason]:
    return [hold.code for hold in plan(view, NOW).holds]


def test_a_sick_node_gets_a_repair_and_a_healthy_one_does_not():
    view = pool_view(spec(3), [sick(1), node(2), node(3)])
    assert [a.node for a in plan(view, NOW).actions if isinstance(a, OpenRepair)] == [NodeId("node-0001")]


def test_a_policy_that_advises_nothing_asks_for_nothing():
    ill = node(1, ailment=ailment("xid 13", Remedy.NOTHING), health=Health.UNHEALTHY)
    assert not [a for a in plan(pool_view(spec(1), [ill]), NOW).actions if isinstance(a, OpenRepair)]


def test_a_repair_that_is_admitted_begins_with_the_cordon():
    ill = sick()
    actions = plan(pool_view(spec(2, health=rules()), [ill, node(2)], [repair(ill)]), NOW).actions
    assert [a.to for a in actions if isinstance(a, AdvanceRepair)] == [RepairStep.CORDONING]
    assert [a.to for a in actions if isinstance(a, MoveNode)] == [NodeState.CORDONED]


def test_nothing_is_bought_before_the_scheduler_knows_of_the_cordon():
    ill = sick(state=NodeState.CORDONED)
    view = pool_view(spec(2), [ill, node(2)], [repair(ill, RepairStep.CORDONING)])
    deaf = changed(view, heartbeats={})
    assert steps(deaf) == []
    assert steps(view) == [RepairStep.BUYING]


def test_the_old_node_is_drained_only_when_its_successor_serves():
    ill, coming = sick(1, state=NodeState.CORDONED), node(2, NodeState.VERIFYING)
    work = repair(ill, RepairStep.BUYING, successor=coming.id)
    assert RepairStep.DRAINING not in steps(pool_view(spec(1), [ill, coming], [work]))
    closed = replace(coming, state=NodeState.UNCORDONING)
    assert RepairStep.DRAINING not in steps(pool_view(spec(1), [ill, closed], [work]))
    serving = replace(coming, state=NodeState.ACTIVE)
    assert steps(pool_view(spec(1), [ill, serving], [work])) == [RepairStep.DRAINING]


def test_the_machine_goes_only_when_nothing_runs_on_it():
    ill = sick(state=NodeState.DRAINING)
    work = repair(ill, RepairStep.DRAINING)
    assert steps(pool_view(spec(1), [ill], [work])) == []
    empty = replace(ill, state=NodeState.DRAINED)
    actions = plan(pool_view(spec(1), [empty], [work]), NOW).actions
    assert [a.to for a in actions if isinstance(a, MoveNode)] == [NodeState.TERMINATING]


def test_a_spare_takes_the_place_at_once():
    ill, spare = sick(1, state=NodeState.CORDONED), node(2, NodeState.SPARE, spare=True)
    wanted = spec(1, scaling=Scaling(least=1, most=1, spares=1))
    actions = plan(pool_view(wanted, [ill, spare], [repair(ill, RepairStep.BUYING)]), NOW).actions
    assert [a.node for a in actions if isinstance(a, AssignReplacement)] == [spare.id]
    assert [(a.node, a.to) for a in actions if isinstance(a, MoveNode)] == [(spare.id, NodeState.UNCORDONING)]


def test_two_repairs_do_not_share_one_spare():
    ills = [sick(1, state=NodeState.CORDONED), sick(2, state=NodeState.CORDONED)]
    spare = node(3, NodeState.SPARE, spare=True)
    wanted = spec(2, scaling=Scaling(least=2, most=2, spares=1))
    actions = plan(
        pool_view(wanted, [*ills, spare], [repair(one, RepairStep.BUYING) for one in ills]), NOW
    ).actions
    assert len([a for a in actions if isinstance(a, AssignReplacement)]) == 1


def test_without_room_for_a_successor_it_is_drained_first():
    ill = sick(state=NodeState.CORDONED)
    full = spec(1, scaling=Scaling(least=1, most=1, surge=CountOrPercent(count=0)))
    assert steps(pool_view(full, [ill], [repair(ill, RepairStep.CORDONING)])) == [RepairStep.DRAINING]


def test_a_quota_that_turns_out_to_be_full_turns_the_order_round():
    ill = sick(state=NodeState.CORDONED)
    trouble = FailureStreak("fake/us-west-2/gpu_8x_h100_sxm5", "quota", 1, later(-1))
    view = pool_view(spec(1), [ill], [repair(ill, RepairStep.BUYING)], troubles={trouble.scope: trouble})
    assert steps(view) == [RepairStep.DRAINING]


@pytest.mark.parametrize(
    ("regions", "scope", "age"),
    [
        (("us-west-2",), "fake/us-west-2/gpu_1x_a10", 1),
        (("us-east-1", "us-west-2"), "fake/us-east-1/gpu_8x_h100_sxm5", 1),
        (("us-west-2",), "fake/us-west-2/gpu_8x_h100_sxm5", 301),
    ],
    ids=["of another type", "of one of two regions", "that may have grown by now"],
)
def test_a_quota_that_does_not_stop_this_purchase_does_not_turn_the_order_round(
    regions: tuple[str, ...], scope: str, age: int
):
    ill, trouble = sick(state=NodeState.CORDONED), FailureStreak(scope, "quota", 1, later(-age))
    pool = spec(1, offers=(Offer("fake", "gpu_8x_h100_sxm5", regions),))
    view = pool_view(pool, [ill], [repair(ill, RepairStep.CORDONING)], troubles={scope: trouble})
    assert steps(view) == [RepairStep.BUYING]


def test_a_successor_that_did_not_come_up_is_bought_again():
    ill = sick(state=NodeState.CORDONED)
    work = repair(ill, RepairStep.BUYING, successor=NodeId("node-gone"))
    actions = plan(pool_view(spec(1), [ill], [work]), NOW).actions
    assert [a.node for a in actions if isinstance(a, AssignReplacement)] == [""]
    assert [a.repair for a in actions if isinstance(a, ProvisionNode)] == [work.id]


def test_treatment_goes_by_drain_treat_verify():
    ill = node(1, NodeState.DRAINED, ailment=ailment("xid 48", Remedy.RESET_GPU), health=Health.UNHEALTHY)
    work = repair(ill, RepairStep.DRAINING, remedy=Remedy.RESET_GPU)
    assert steps(pool_view(spec(1), [ill], [work])) == [RepairStep.TREATING]
    treating = replace(work, step=RepairStep.TREATING)
    view = pool_view(spec(1), [ill], [treating])
    assert steps(view) == []
    done = changed(
        view, heartbeats={ill.id: replace(view.heartbeats[ill.id], treated=frozenset({str(work.id)}))}
    )
    assert steps(done) == [RepairStep.VERIFYING]


@pytest.mark.parametrize(
    ("step", "state", "moves"),
    [
        (RepairStep.CORDONING, NodeState.CORDONED, [NodeState.UNCORDONING]),
        (RepairStep.BUYING, NodeState.CORDONED, [NodeState.UNCORDONING]),
        (RepairStep.DRAINING, NodeState.DRAINING, [NodeState.CORDONED]),
    ],
)
def test_a_node_that_is_heard_again_is_left_at_work(
    step: RepairStep, state: NodeState, moves: list[NodeState]
):
    back = node(1, state)
    work = repair(back, step, remedy=Remedy.REBOOT, signature="silence")
    assert steps(pool_view(spec(2), [back, node(2)], [work])) == [RepairStep.CANCELLED]
    after = pool_view(spec(2), [back, node(2)], [work] if state is NodeState.DRAINING else [])
    assert [a.to for a in plan(after, NOW).actions if isinstance(a, MoveNode)] == moves
    for other in (replace(work, signature="thermal"), replace(work, by="a person")):
        assert RepairStep.CANCELLED not in steps(pool_view(spec(2), [back, node(2)], [other]))


def test_a_treatment_that_does_not_help_fails_and_the_next_rung_follows():
    ill = node(1, NodeState.CORDONED, ailment=ailment("xid 48", Remedy.RESET_GPU), health=Health.UNHEALTHY)
    past = [
        repair(ill, RepairStep.FAILED, id=f"repair-{n}", remedy=Remedy.RESET_GPU, ended=later(-3_600))
        for n in "ab"
    ]
    view = pool_view(spec(1), [ill], past)
    assert [a.remedy for a in plan(view, NOW).actions if isinstance(a, OpenRepair)] == [Remedy.REBOOT]


def test_a_host_that_cost_a_node_before_is_returned():
    ill = sick(host="host-7")
    past = [repair(node(9), RepairStep.DONE, id="repair-old", host="host-7", ended=later(-3_600))]
    view = pool_view(spec(1), [ill], past)
    assert [a.remedy for a in plan(view, NOW).actions if isinstance(a, OpenRepair)] == [Remedy.RMA]


@pytest.mark.parametrize(
    ("ill", "changes", "code"),
    [
        (sick(), {"state": PoolState("training", wanted=2, paused="a person: lunch")}, HoldReason.PAUSED),
        (sick(), {"spec": spec(2, health=rules(auto_replace=False))}, HoldReason.AUTO_REPLACE_OFF),
        (sick(), {"spec": spec(2, health=rules(approval=frozenset({Remedy.REPLACE})))}, HoldReason.APPROVAL),
        (sick(held=True), {}, HoldReason.HELD_BY_OPERATOR),
        (sick(origin=Origin.JOINED), {}, HoldReason.APPROVAL),
    ],
)
def test_what_keeps_a_repair_waiting_says_so(ill: Node, changes: dict[str, object], code: HoldReason):
    view = changed(pool_view(spec(2, health=rules()), [ill, node(2)], [repair(ill)]), **changes)
    assert codes(view) == [code]
    assert steps(view) == []


def test_an_approved_repair_begins_although_replacing_is_not_automatic():
    ill = sick()
    view = pool_view(
        spec(2, health=rules(auto_replace=False)), [ill, node(2)], [repair(ill, approved=True, by="a person")]
    )
    assert steps(view) == [RepairStep.CORDONING]


def test_a_repair_that_is_not_needed_any_more_is_called_off():
    well = node(1)
    assert steps(pool_view(spec(1), [well], [repair(well)])) == [RepairStep.CANCELLED]


def test_many_alike_at_once_wait_until_the_cause_is_clear_and_then_go_on():
    ills = [sick(n) for n in range(1, 6)]
    watchful = rules(cause=CommonCause(), budgets=(Budget(CountOrPercent(count=2)),))
    view = pool_view(
        spec(10, health=watchful), [*ills, *[node(n) for n in range(6, 11)]], [repair(one) for one in ills]
    )
    held = plan(view, NOW)
    assert {hold.code for hold in held.holds} == {HoldReason.COMMON_CAUSE}
    assert "one cause" in held.holds[0].sentence
    assert held.wake_at is not None
    clear = plan(view, NOW + Duration.of(minutes=6))
    assert len([a for a in clear.actions if isinstance(a, AdvanceRepair)]) == 2
    assert {hold.code for hold in clear.holds} == {HoldReason.BUDGET}


def restarts(signature: str, times: int, **changes: Any) -> PoolView:
    """A node whose work was restarted so often, and that is ill again."""
    sickness = ailment(signature, Remedy.RESTART_WORKLOAD)
    ill = node(1, ailment=sickness, health=Health.UNHEALTHY)
    past = [
        repair(ill, RepairStep.DONE, id=f"repair-{n}", remedy=Remedy.RESTART_WORKLOAD, ended=later(-3_600))
        for n in range(times)
    ]
    return pool_view(spec(2, health=rules()), [ill, node(2)], past, **changes)


def opened(view: PoolView) -> list[Remedy]:
    return [action.remedy for action in plan(view, NOW).actions if isinstance(action, OpenRepair)]


def test_to_restart_the_work_of_a_node_is_to_drain_it_and_let_it_serve():
    assert opened(restarts("nvlink", 0)) == [Remedy.RESTART_WORKLOAD]
    ill = node(
        1, NodeState.DRAINED, ailment=ailment("nvlink", Remedy.RESTART_WORKLOAD), health=Health.UNHEALTHY
    )
    begun_ = repair(ill, RepairStep.DRAINING, remedy=Remedy.RESTART_WORKLOAD)
    actions = plan(pool_view(spec(1), [ill], [begun_]), NOW).actions
    assert [a.to for a in actions if isinstance(a, AdvanceRepair)] == [RepairStep.VERIFYING]
    assert [a.to for a in actions if isinstance(a, MoveNode)] == [NodeState.VERIFYING]


def test_where_a_restart_does_not_help_the_machine_is_treated():
    assert opened(restarts("nvlink", 2)) == [Remedy.RESET_GPU]


def test_an_applications_error_never_asks_for_more_than_its_policy_advises():
    view = restarts("xid 13", 2)
    assert opened(view) == [Remedy.RESTART_WORKLOAD]
    (ill,) = [one for one in view.nodes if one.ailment]
    waiting = repair(ill, remedy=Remedy.RESTART_WORKLOAD)
    held = changed(view, repairs=[*view.repairs, waiting])
    assert codes(held) == [HoldReason.ATTEMPTS]
    assert steps(held) == []
    once_more = changed(view, repairs=[*view.repairs, replace(waiting, approved=True)])
    assert steps(once_more) == [RepairStep.CORDONING]


def test_a_node_that_was_just_treated_is_given_time():
    ill = node(1, ailment=ailment("xid 48", Remedy.RESET_GPU), health=Health.UNHEALTHY)
    past = repair(ill, RepairStep.DONE, id="repair-old", remedy=Remedy.RESET_GPU, ended=later(-60))
    now = repair(ill, remedy=Remedy.RESET_GPU)
    view = pool_view(spec(1, health=rules(ladder=RepairLadder())), [ill], [past, now])
    assert codes(view) == [HoldReason.COOL_DOWN]


@given(
    size=st.integers(1, 40),
    ill=st.integers(0, 40),
    at_work=st.integers(0, 6),
    budget=st.one_of(
        st.integers(0, 10).map(lambda n: CountOrPercent(count=n)),
        st.integers(1, 50).map(lambda n: CountOrPercent(percent=n)),
    ),
)
def test_never_more_nodes_are_taken_out_of_service_than_the_budget_allows(
    size: int, ill: int, at_work: int, budget: CountOrPercent
):
    members = nodes(size)
    patients = members[: min(ill, size)]
    repairs = [
        repair(one, RepairStep.BUYING if index < at_work else RepairStep.WAITING)
        for index, one in enumerate(patients)
    ]
    members = [
        replace(
            one,
            ailment=ailment() if one in patients else None,
            state=NodeState.CORDONED if one in patients[:at_work] else one.state,
        )
        for one in members
    ]
    view = pool_view(spec(size, health=rules(budgets=(Budget(budget),))), members, repairs)
    before = sum(begun(one) for one in repairs)
    new = [
        a for a in plan(view, NOW).actions if isinstance(a, AdvanceRepair) and a.to is RepairStep.CORDONING
    ]
    assert before + len(new) <= max(before, budget.of(size))


def test_where_a_successor_cannot_be_paid_for_beside_it_the_old_node_goes_first():
    ill = sick(state=NodeState.CORDONED)
    ill, well = (replace(one, place=replace(one.place, price=10.0)) for one in (ill, node(2)))
    for total, step in ((25.0, RepairStep.DRAINING), (30.0, RepairStep.BUYING)):
        wanted = spec(2, spending=SpendLimits(total=total))
        assert steps(pool_view(wanted, [ill, well], [repair(ill, RepairStep.CORDONING)])) == [step]
