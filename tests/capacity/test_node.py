"""One thing under three names, and the marks on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.capacity.node import IdentityClaim, KnownNode, ProviderId, Taint, TaintEffect, resolve
from neorion.capacity.node.marks import CORDONED

A = KnownNode("node-a", "i-0a", "buy-a", "ip-10-0-0-1")
B = KnownNode("node-b", "i-0b", "buy-b", "ip-10-0-0-2")


@pytest.mark.parametrize("name", ["node-a", "i-0a", "buy-a", "ip-10-0-0-1"])
def test_a_node_is_known_by_every_name_it_has(name: str):
    assert resolve(IdentityClaim(name), [A, B]) == "node-a"


def test_the_providers_id_of_a_kubernetes_node_names_its_machine():
    claim = IdentityClaim("a name nobody knows", provider_id="aws:///us-west-2a/i-0b")
    assert resolve(claim, [A, B]) == "node-b"


def test_a_claim_that_fits_two_nodes_is_not_believed():
    assert resolve(IdentityClaim("node-a", machine="i-0b"), [A, B]) is None


def test_a_claim_that_fits_nothing_is_not_believed():
    assert resolve(IdentityClaim("node-c"), [A, B]) is None
    assert resolve(IdentityClaim(""), [KnownNode("node-a")]) is None


@pytest.mark.parametrize(
    ("text", "cloud", "machine"),
    [
        ("aws:///us-west-2a/i-0abc", "aws", "i-0abc"),
        ("gce://my-project/us-central1-a/worker-1", "gce", "worker-1"),
        ("lambda://0123abc", "lambda", "0123abc"),
    ],
)
def test_provider_ids_are_read(text: str, cloud: str, machine: str):
    found = ProviderId.parse(text)
    assert found is not None
    assert (found.cloud, found.machine) == (cloud, machine)


@given(st.text())
def test_any_text_is_a_provider_id_or_none(text: str):
    found = ProviderId.parse(text)
    assert found is None or text.endswith(found.machine)


@given(st.text())
def test_a_reason_becomes_a_value_that_kubernetes_takes(why: str):
    value = Taint.with_reason(CORDONED, TaintEffect.NO_SCHEDULE, why).value
    assert len(value) <= 63
    assert all(char.isascii() and (char.isalnum() or char in "._-") for char in value)
    assert not value or (value[0].isalnum() and value[-1].isalnum())
