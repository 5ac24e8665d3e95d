"""What time does to nodes: who may serve, and who is given back before it does."""

import pytest

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Duration
from neorion.navarch.decide import FailNode, MoveNode, ReportSilence, explain_node, explain_pool, plan
from neorion.navarch.model import (
    EventKind,
    Health,
    HealthEvent,
    Node,
    NodeHeartbeat,
    NodeState,
    Origin,
    PoolView,
    RepairStep,
)
from neorion.navarch.model.spec import Timing
from neorion.navarch.testing import NOW, ailment, later, node, pool_view, repair, spec


def verifying(*, tested: bool | None, **changes: object) -> tuple[Node, PoolView]:
    """A new node whose agent has registered, and what it said of itself."""
    new = node(1, NodeState.VERIFYING, since=later(-60), **changes)
    return new, pool_view(
        spec(1), [new], heartbeats={new.id: NodeHeartbeat(heard=NOW, marked=True, tested=tested)}
    )


def done(view: PoolView) -> list[object]:
    return [
        action.to if isinstance(action, MoveNode) else type(action)
        for action in plan(view, NOW).actions
        if isinstance(action, MoveNode | FailNode)
    ]


@pytest.mark.parametrize(
    ("tested", "does"), [(None, []), (True, [NodeState.UNCORDONING]), (False, [FailNode])]
)
def test_a_new_node_serves_when_its_agent_says_that_it_is_fit(*, tested: bool | None, does: list[object]):
    new, view = verifying(tested=tested)
    assert done(view) == does
    told = " ".join(explain_node(new, view, plan(view, NOW), NOW))
    assert ("It waits" in told) == (tested is not True)


def test_a_fit_node_must_be_well_for_as_long_as_its_pool_says():
    new, view = verifying(tested=True)
    for needed, does in ((120, []), (30, [NodeState.UNCORDONING])):
        timing = Timing(verify=Duration.of(seconds=needed))
        assert done(pool_view(spec(1, timing=timing), [new], heartbeats=view.heartbeats)) == does


def test_a_node_that_nobody_declares_fit_is_given_back_after_a_while():
    new = node(1, NodeState.VERIFYING, since=later(-3_601))
    assert done(pool_view(spec(1), [new], heartbeats={new.id: NodeHeartbeat(heard=NOW)})) == [FailNode]


@pytest.mark.parametrize("tested", [None, True, False])
def test_a_sick_machine_of_somebody_else_is_kept_out_of_service_and_not_forgotten(*, tested: bool | None):
    sick = {"ailment": ailment(), "health": Health.UNHEALTHY}
    assert done(verifying(tested=tested, origin=Origin.JOINED, **sick)[1]) == [NodeState.CORDONED]
    assert done(verifying(tested=tested, **sick)[1]) == [FailNode]


@pytest.mark.parametrize(("tested", "does"), [(None, []), (False, [FailNode])])
def test_a_driver_that_is_still_to_come_is_waited_for(*, tested: bool | None, does: list[object]):
    sick = {"ailment": ailment("driver"), "health": Health.UNHEALTHY}
    assert done(verifying(tested=tested, **sick)[1]) == does


def test_a_machine_of_somebody_else_that_is_not_fit_does_not_serve():
    assert done(verifying(tested=False, origin=Origin.JOINED)[1]) == []
    assert done(verifying(tested=True, origin=Origin.JOINED)[1]) == [NodeState.UNCORDONING]


@pytest.mark.parametrize(
    ("state", "goes_to"),
    [(NodeState.CORDONED, NodeState.DRAINING), (NodeState.DRAINED, NodeState.TERMINATING)],
)
def test_a_node_that_somebody_holds_goes_nowhere(state: NodeState, goes_to: NodeState):
    def moves(*, held: bool) -> list[object]:
        return done(pool_view(spec(0), [node(1, state, retiring=True, held=held)]))

    assert moves(held=False) == [goes_to]
    assert moves(held=True) == []


@pytest.mark.parametrize(("noted", "again"), [(None, True), (-10, False), (-3_600, True)])
def test_silence_behind_a_worse_fault_is_noted_now_and_then(*, noted: float | None, again: bool):
    sick = node(1, ailment=ailment())
    events = [] if noted is None else [HealthEvent(later(noted), EventKind.SILENCE)]
    heartbeats = {sick.id: NodeHeartbeat(heard=later(-7_200), marked=True)}
    view = pool_view(spec(1), [sick], [repair(sick)], heartbeats=heartbeats, events={sick.id: events})
    assert any(isinstance(action, ReportSilence) for action in plan(view, NOW).actions) is again


def test_a_node_that_a_person_keeps_says_so_and_how_it_is_let_go():
    kept = node(1, NodeState.CORDONED, held=True, why="ada: look at the fans")
    view = pool_view(spec(1), [kept])
    told = explain_node(kept, view, plan(view, NOW), NOW)
    assert told[-1] == (
        "An operator keeps the node as it is: ada: look at the fans. navarch node uncordon node-0001"
    )


def test_a_treatment_that_is_waited_for_says_until_when():
    ill = node(1, NodeState.DRAINED, ailment=ailment("silence", Remedy.REBOOT))
    view = pool_view(spec(1), [ill], [repair(ill, RepairStep.TREATING, remedy=Remedy.REBOOT, since=NOW)])
    told = explain_node(ill, view, plan(view, NOW), NOW)
    assert told[-1].endswith(f"has carried that out, until {later(1_200)} at the latest.")


def test_a_pool_tells_of_machines_that_others_bought():
    theirs = node(1, origin=Origin.JOINED, ailment=ailment())
    view = pool_view(spec(0), [theirs])
    told = explain_pool(view, plan(view, NOW), NOW)
    assert "It also watches adopted machines (1): node-0001." in told
    assert "Not all of its nodes are healthy (1): node-0001." in told


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (NodeState.ORDERED, "It waits: its cloud has not answered yet."),
        (NodeState.BOOTING, f"It waits: its agent has not registered yet, and has until {later(900)}."),
    ],
)
def test_a_node_that_is_coming_says_for_whom_it_waits(state: NodeState, says: str):
    new = node(1, state, since=NOW, health=Health.UNKNOWN)
    view = pool_view(spec(1), [new])
    assert says in explain_node(new, view, plan(view, NOW), NOW)
