"""What a pool's roll counts is what a look at every node would find."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neorion.navarch.decide.pool_size import count_members, members
from neorion.navarch.model import (
    Node,
    NodeHeartbeat,
    NodeId,
    NodeState,
    Origin,
    Placement,
    PoolNodeIndex,
    RepairStep,
)
from neorion.navarch.testing import NOW, ailment, later, node, pool_view, repair, spec

PLACES = [Placement("fake", "gpu", "us", zone, price=price) for zone, price in (("a", 1.0), ("b", 2.5))]
NODES = st.builds(
    replace,
    st.builds(node, st.integers(1, 8)),
    # Every second one is settled but for what is said below, which is rare.
    state=st.just(NodeState.ACTIVE)
    | st.sampled_from([one for one in NodeState if one is not NodeState.TERMINATED]),
    ailment=st.sampled_from([None, None, None, ailment()]),
    origin=st.sampled_from([Origin.BOUGHT, Origin.BOUGHT, Origin.JOINED]),
    spare=st.sampled_from([False, False, True]),
    retiring=st.sampled_from([False, False, True]),
    place=st.sampled_from(PLACES),
)
# A node as it becomes, or the name of one that goes.
CHANGES = st.lists(NODES | st.integers(1, 8).map(lambda number: node(number).id), max_size=40)


@given(CHANGES, st.sets(st.integers(1, 8)))
def test_counting_changes_comes_to_the_same_as_counting_nodes(
    changes: list[Node | NodeId], replaced: set[int]
):
    known: dict[NodeId, Node] = {}
    roll = PoolNodeIndex()
    for change in changes:
        if isinstance(change, Node):
            known[change.id] = change
            roll.put(change)
        else:
            known.pop(change, None)
            roll.drop(change)
    everybody = list(known.values())
    repairs = [
        repair(node(one), RepairStep.BUYING, successor=everybody[0].id)
        for one in sorted(replaced)
        if everybody
    ]
    view = pool_view(spec(8), [], repairs, roll=roll)
    assert dict(roll.nodes) == known
    assert view.settled + len(view.unsettled) == len(known)
    assert view.serving == sum(one.state.serving for one in everybody)
    assert view.spread == Counter(one.place.where for one in everybody)
    assert count_members(view) == len(members(view))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_who_was_heard_last_stands_last(heard: list[int]):
    members = [node(number) for number in range(1, 6)]
    view = pool_view(spec(5), members, heartbeats={})
    heartbeats = {one.id: NodeHeartbeat() for one in members}
    for second, number in enumerate(heard):
        heartbeats[node(number).id] = NodeHeartbeat(heard=later(second))
        view.roll.move_to_end(node(number).id)
    told = [
        at.ns
        for _, at in pool_view(spec(5), [], roll=view.roll, heartbeats=heartbeats, started=NOW).speaking()
    ]
    assert told == sorted(told)
    assert len(told) == len(members)
