"""Server-side apply in small: wanted fields come, dropped ones go, others' stay, and quarrels are told."""

from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.kube.testing import field_ownership
from neorion.keel.kube.testing.field_ownership import Json, Owners

scalars = st.sampled_from([1, 2, "x"])
documents = st.recursive(
    st.dictionaries(st.sampled_from("abc"), scalars, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), scalars | inner, max_size=3),
    max_leaves=8,
)


def applied(owners: Owners, manager: str, live: Json, wanted: Json) -> Json:
    after, conflicts = field_ownership.owned_by_apply(owners, manager, live, wanted)
    field_ownership.disown(owners, {path for _, path in conflicts}, spare=manager)
    field_ownership.take_over(owners, manager, set(field_ownership.leaves(wanted)), applied=True)
    return after


def test_a_field_no_longer_wanted_goes_and_one_that_another_owns_too_stays():
    owners: Owners = {}
    live = applied(owners, "us", {}, {"spec": {"a": 1, "b": 2, "c": {"d": 3}}})
    live = applied(owners, "them", live, {"spec": {"b": 2, "e": 5}})
    live = applied(owners, "us", live, {"spec": {"a": 1}})
    assert live == {"spec": {"a": 1, "b": 2, "e": 5}}


def test_two_managers_quarrel_only_over_different_values():
    owners: Owners = {}
    live = applied(owners, "us", {}, {"spec": {"a": 1, "b": 2}})
    _, conflicts = field_ownership.owned_by_apply(owners, "them", live, {"spec": {"a": 1, "b": 9}})
    assert conflicts == [("us", ("spec", "b"))]


def test_elements_with_keys_have_owners_of_their_own_and_other_lists_are_one_value():
    owners: Owners = {}
    live = applied(owners, "us", {}, {"conditions": [{"type": "Ready", "status": "True"}], "args": ["a"]})
    live = applied(owners, "them", live, {"conditions": [{"type": "Idle", "status": "False"}]})
    live = applied(
        owners, "us", live, {"conditions": [{"type": "Ready", "status": "False"}], "args": ["b", "c"]}
    )
    assert live == {
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Idle", "status": "False"}],
        "args": ["b", "c"],
    }
    live = applied(owners, "us", live, {})
    assert live == {"conditions": [{"type": "Idle", "status": "False"}]}


def test_a_set_loses_what_its_manager_drops_and_keeps_the_rest():
    owners: Owners = {}
    live = applied(owners, "us", {}, {"metadata": {"finalizers": ["ours/a", "ours/b"]}})
    live = applied(owners, "them", live, {"metadata": {"finalizers": ["theirs/c"]}})
    live = applied(owners, "us", live, {"metadata": {"finalizers": ["ours/b"]}})
    assert live == {"metadata": {"finalizers": ["ours/b", "theirs/c"]}}


@given(documents)
def test_applying_twice_is_applying_once(wanted: Json):
    owners: Owners = {}
    once = applied(owners, "us", {}, wanted)
    assert applied(owners, "us", once, wanted) == once


@given(documents, documents)
def test_a_lone_manager_gets_the_fields_it_wants_and_no_others(first: Json, second: Json):
    owners: Owners = {}
    live = applied(owners, "us", applied(owners, "us", {}, first), second)
    assert set(field_ownership.leaves(live)) == set(field_ownership.leaves(second))
    assert all(
        field_ownership.get(live, path) == field_ownership.get(second, path)
        for path in field_ownership.leaves(second)
    )


@given(documents, documents)
def test_an_update_owns_what_it_changed(before: Json, after: Json):
    changed, removed = field_ownership.changed(before, after)
    assert changed <= set(field_ownership.leaves(after))
    assert removed.isdisjoint(field_ownership.leaves(after))
