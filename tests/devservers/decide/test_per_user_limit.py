"""A flavor of which each user gets only so many."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neorion.devservers.decide import Decision, Observed, decide, flavors_of, servers_before
from neorion.devservers.model import (
    AppliedFlavor,
    Condition,
    ConditionType,
    DevServerSpec,
    DevServerStatus,
    FlavorLimits,
    Lifecycle,
    Phase,
)
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import ObjectMeta

NOW = CREATED + timedelta(minutes=5)
TWO = replace(FLAVOR, limits=FlavorLimits(max_per_user=2))
SPEC = DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(auto_shutdown=False))
STANDING = DevServerStatus(
    conditions=(Condition(type=ConditionType.FLAVOR, status="True", reason="Accepted"),),
    flavor=AppliedFlavor(applied="cpu-small"),
)


def told(ahead: int, **seen: object) -> Decision:
    whole = {"server": a_server(SPEC), "flavor": a_flavor(TWO), "home": a_claim(), "ahead": ahead, **seen}
    return decide(Observed(**whole), SETTINGS, NOW)  # pyright: ignore[reportArgumentType] -- each test's own fields


def named(name: str, minute: int = 0, *, stands: bool = False, deleted: bool = False) -> DevServerObject:
    meta = ObjectMeta(
        name=name,
        namespace="dev-ann",
        created=(CREATED + timedelta(minutes=minute)).isoformat(),
        deleted=NOW.isoformat() if deleted else None,
    )
    return DevServerObject(meta=meta, spec=SPEC, status=STANDING if stands else DevServerStatus())


def test_one_too_many_gets_nothing_and_hears_why():
    refused = told(2)
    assert (refused.objects, refused.status.phase) == ((), Phase.FAILED)
    assert refused.status.message is not None
    assert "cpu-small allows 2 servers for each user" in refused.status.message
    assert [note.reason for note in refused.notes] == ["TooMany"]


def test_the_last_that_is_allowed_gets_everything():
    assert told(1).objects
    assert told(1_000, flavor=a_flavor()).objects


def test_a_server_that_runs_goes_on_when_the_ration_shrinks():
    going = told(2, pods=(a_pod(),))
    assert (going.status.phase, bool(going.objects)) == (Phase.RUNNING, True)


@pytest.mark.parametrize("nodes", [{"zone": "b"}, {}], ids=["other nodes", "the same machine"])
def test_a_server_that_runs_does_not_move_to_where_there_is_no_room_for_it(nodes: dict[str, str]):
    status = replace(STANDING, flavor=AppliedFlavor(applied="old"))
    there = replace(TWO, node_selector=nodes)
    held = told(2, server=a_server(SPEC, status), flavor=a_flavor(there), pods=(a_pod(),))
    assert "Deployment" not in [made["kind"] for made in held.objects]
    assert held.status.flavor == AppliedFlavor(applied="old")
    resizing = next(one for one in held.status.conditions if one.type is ConditionType.RESIZING)
    assert (resizing.status, resizing.reason) == ("False", "TooMany")
    assert told(1, server=a_server(SPEC, status), flavor=a_flavor(there), pods=(a_pod(),)).status.flavor == (
        AppliedFlavor(applied="cpu-small", previous="old", changed=NOW)
    )


def test_who_stands_on_the_flavor_comes_before_who_is_older():
    young, old = named("young", 9, stands=True), named("old", 0)
    assert (servers_before(young, [old]), servers_before(old, [young])) == (0, 1)


def test_who_runs_on_the_flavor_and_asks_for_another_still_has_it():
    elsewhere = replace(SPEC, flavor="nope")
    status = replace(STANDING, conditions=())
    one = replace(named("one", 9), spec=elsewhere, status=status)
    assert flavors_of(one) == ("nope", "cpu-small")
    assert servers_before(named("other", 0), [one]) == 1
    assert flavors_of(replace(one, spec=replace(elsewhere, running=False))) == ("nope",)


def test_who_is_on_the_way_out_is_in_nobodys_way():
    assert servers_before(named("b", 1), [named("a", deleted=True)]) == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 12),
)
def test_exactly_as_many_as_are_allowed_are_let_in(servers: list[tuple[int, bool]], most: int):
    fleet = [named(f"s{number}", minute, stands=stands) for number, (minute, stands) in enumerate(servers)]
    let_in = [
        one for one in fleet if servers_before(one, [other for other in fleet if other is not one]) < most
    ]
    assert len(let_in) == min(most, len(fleet))
