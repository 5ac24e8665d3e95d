"""Who has which addresses."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.drydock.network import NODES_MAX, SLOTS, Addresses, reaching_clusters

slots = st.integers(0, SLOTS - 1)
indexes = st.integers(1, NODES_MAX)


@given(slots, slots)
def test_no_two_clusters_share_an_address(one: int, other: int):
    assert (one == other) is Addresses(one).block.overlaps(Addresses(other).block)


@given(slots)
def test_the_four_networks_of_a_cluster_lie_apart_in_its_block(slot: int):
    addresses = Addresses(slot)
    networks = [addresses.nodes, addresses.pods, addresses.services, addresses.simulated]
    assert not any(one.overlaps(other) for one, other in combinations(networks, 2))
    assert all(network.subnet_of(addresses.block) for network in networks)
    assert addresses.host in addresses.nodes
    assert addresses.api in addresses.services
    assert addresses.dns in addresses.services


@given(slots, indexes, indexes)
def test_no_two_nodes_share_an_address_a_pod_network_or_a_cable(slot: int, one: int, other: int):
    addresses = Addresses(slot)
    same = one == other
    assert (addresses.node(one) == addresses.node(other)) is same
    assert addresses.pods_of(one).overlaps(addresses.pods_of(other)) is same
    assert (addresses.wire(one) == addresses.wire(other)) is same
    assert addresses.node(one) != addresses.host


@given(slots, indexes)
def test_the_kernel_takes_the_names_of_links(slot: int, index: int):
    assert len(Addresses(slot).wire(index)) <= 15


@pytest.mark.parametrize("index", [0, NODES_MAX + 1])
def test_there_are_no_nodes_beyond_the_last(index: int):
    with pytest.raises(ValueError, match="at most"):
        Addresses(0).node(index)


def test_no_cluster_is_sought_behind_a_proxy_and_what_was_spared_before_stays_so():
    for before, after in (
        ({"A": "b"}, "10.128.0.0/9"),
        ({"NO_PROXY": ".corp,10.0.0.1", "no_proxy": "other"}, ".corp,10.0.0.1,10.128.0.0/9"),
        ({"no_proxy": ".corp"}, ".corp,10.128.0.0/9"),
    ):
        assert reaching_clusters(before) == {**before, "NO_PROXY": after, "no_proxy": after}
