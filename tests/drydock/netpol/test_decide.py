"""Which connections NetworkPolicies allow, and the rules that nftables gets."""

from typing import Any

import msgspec
import pytest

from neorion.drydock.netpol.decide import Allowed, Endpoint, PodRules, PolicySnapshot, endpoint, node_rules
from neorion.drydock.netpol.policy_types import NetworkPolicy, PolicyPod
from neorion.drydock.netpol.ruleset import ruleset

ALL = (0, 65_535)
WEB = Endpoint("dev-ann", {"app": "web"}, "10.1.1.2", "node1", (("TCP", "http", 8080),))
BOX = Endpoint("dev-ann", {"app": "box"}, "10.1.2.2", "node2")
BOB = Endpoint("dev-bob", {"app": "web"}, "10.1.1.3", "node1", (("TCP", "http", 9090),))
DNS = Endpoint("kube-system", {}, "10.0.0.1", "", (("UDP", "dns", 53), ("TCP", "dns", 53)), only=True)
NAMESPACES = {name: {"kubernetes.io/metadata.name": name} for name in ("dev-ann", "dev-bob", "kube-system")}


def rules(*specs: dict[str, Any], node: str = "node1") -> tuple[PodRules, ...]:
    policies = [
        msgspec.convert(
            {"metadata": {"name": f"p{number}", "namespace": "dev-ann"}, "spec": spec}, NetworkPolicy
        )
        for number, spec in enumerate(specs)
    ]
    return node_rules(PolicySnapshot(tuple(policies), NAMESPACES, (WEB, BOX, BOB, DNS)), node)


def test_a_pod_that_no_policy_selects_has_no_rules():
    assert rules() == ()
    assert rules({"podSelector": {"matchLabels": {"app": "other"}}}) == ()


def test_a_policy_without_rules_allows_nothing_in_its_directions():
    assert rules({"podSelector": {}, "policyTypes": ["Egress"]}) == (PodRules("10.1.1.2", None, ()),)
    assert rules({"podSelector": {}}) == (PodRules("10.1.1.2", (), None),)
    assert rules({"podSelector": {}, "egress": [{}]}) == (PodRules("10.1.1.2", (), (Allowed(),)),)


@pytest.mark.parametrize(
    ("peer", "addresses"),
    [
        ({"podSelector": {}}, ("10.1.1.2", "10.1.2.2")),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, ("10.1.1.2",)),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dev-bob"}}}, ("10.1.1.3",)),
        ({"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}, ("10.1.1.2", "10.1.1.3")),
        ({"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}, ("10.1.2.2",)),
        ({"podSelector": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}}, None),
        ({"podSelector": {"matchExpressions": [{"key": "app", "operator": "Unheard"}]}}, None),
    ],
)  # fmt: skip
def test_peers_are_selected_by_the_labels_of_pods_and_namespaces(
    peer: dict[str, Any], addresses: tuple[str, ...] | None
):
    (found,) = rules({"podSelector": {}, "ingress": [{"from": [peer]}]})
    assert found.ingress == (() if addresses is None else (Allowed(addresses),))


def test_rules_of_several_policies_add_up():
    one = {"podSelector": {}, "ingress": [{"ports": [{"port": 22}]}]}
    two = {"podSelector": {}, "ingress": [{"ports": [{"port": 80, "endPort": 90, "protocol": "UDP"}]}]}
    (found,) = rules(one, two)
    assert found.ingress == (Allowed(protocol="TCP", ports=(22, 22)), Allowed(protocol="UDP", ports=(80, 90)))


def test_a_named_port_is_that_of_the_pod_which_is_connected_to():
    ports = [{"port": "http"}]
    (inward,) = rules({"podSelector": {}, "ingress": [{"ports": ports}]})
    assert inward.ingress == (Allowed(protocol="TCP", ports=(8080, 8080)),)
    everyone = {"namespaceSelector": {}}
    (outward,) = rules(
        {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [everyone], "ports": ports}]}
    )
    assert outward.egress == (
        Allowed(("10.1.1.2",), (), "TCP", (8080, 8080)),
        Allowed(("10.1.1.3",), (), "TCP", (9090, 9090)),
    )


def test_a_range_is_allowed_less_its_exceptions_and_ranges_of_ipv6_have_no_pods():
    blocks = [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}, {"ipBlock": {"cidr": "::/0"}}]
    (found,) = rules({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": blocks}]})
    assert found.egress == (Allowed(("0.0.0.0/0",), ("10.0.0.0/8",)),)


@pytest.mark.parametrize("ports", [[], [{"port": 53}, {"port": 53, "protocol": "UDP"}]])
def test_the_machine_that_serves_names_is_reached_for_names_alone(ports: list[dict[str, Any]]):
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    rule = {"to": [system], **({"ports": ports} if ports else {})}
    (found,) = rules({"podSelector": {}, "policyTypes": ["Egress"], "egress": [rule]})
    assert found.egress == tuple(Allowed(("10.0.0.1",), (), kind, (53, 53)) for kind in ("TCP", "UDP"))


def test_a_pod_that_has_ended_or_shares_its_nodes_network_is_no_endpoint():
    running: dict[str, Any] = {
        "status": {"phase": "Running", "podIP": "10.1.1.2"},
        "spec": {"nodeName": "node1"},
    }
    assert msgspec.convert(running, PolicyPod).has_address
    assert endpoint(msgspec.convert(running, PolicyPod)).node == "node1"
    for change in (
        {"status": {"phase": "Succeeded", "podIP": "10.1.1.2"}},
        {"status": {"phase": "Pending"}},
        {"spec": {"nodeName": "node1", "hostNetwork": True}},
    ):
        assert not msgspec.convert(running | change, PolicyPod).has_address


def test_the_ruleset_refuses_what_no_rule_allows_and_looks_at_both_ends():
    ssh = Allowed(("10.1.9.9",), (), "TCP", (22, 22))
    text = ruleset([PodRules("10.1.1.2", (ssh,), (Allowed(("0.0.0.0/0",), ("10.0.0.0/8",)),))], "10.1.1.0/24")
    assert "ip saddr { 10.1.9.9 } tcp dport 22 return\n    reject" in text
    assert "ip daddr { 0.0.0.0/0 } ip daddr != { 10.0.0.0/8 } return\n    reject" in text
    forward, to_node = (text.split(f"chain {hook} ")[1].split("}\n  }")[0] for hook in ("forward", "input"))
    assert "saddr vmap { 10.1.1.2 : jump to-10.1.1.2 " in forward
    assert "daddr vmap { 10.1.1.2 : jump from-10.1.1.2 " in forward
    assert "saddr vmap { 10.1.1.2 : jump to-10.1.1.2 " in to_node
    assert "from-" not in to_node


def test_a_node_without_rules_has_an_empty_table():
    assert ruleset([], "10.1.1.0/24").splitlines() == [
        "table inet network-policies",
        "delete table inet network-policies",
    ]
