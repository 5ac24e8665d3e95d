"""The connections that NetworkPolicies allow to and from each pod. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from neorion.drydock.netpol.policy_types import (
    LabelSelector,
    NetworkPolicy,
    PolicyPeer,
    PolicyPod,
    PolicyPort,
)

_EVERYTHING: Final = LabelSelector()
_ALL_PORTS: Final = (0, 65_535)

# A protocol, or "" for all of them, with the first and the last port.
PortRange = tuple[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A pod on the network. `serves` are its ports by protocol and name; `only` says that it has no others."""

    namespace: str
    labels: Mapping[str, str]
    address: str
    node: str = ""
    serves: tuple[tuple[str, str, int], ...] = ()
    only: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Allowed:
    """Connections with `addresses`, less `excluded`. No address means any, no protocol means all."""

    addresses: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    protocol: str = ""
    ports: tuple[int, int] = _ALL_PORTS


@dataclass(frozen=True, slots=True)
class PodRules:
    """The connections of one pod. None is a direction that no policy restricts."""

    address: str
    ingress: tuple[Allowed, ...] | None
    egress: tuple[Allowed, ...] | None


def endpoint(pod: PolicyPod) -> Endpoint:
    named = (each for container in pod.spec.containers for each in container.ports if each.name)
    serves = tuple((each.protocol, each.name, each.number) for each in named)
    return Endpoint(pod.meta.namespace, pod.meta.labels, pod.status.pod_ip, pod.spec.node_name, serves)


@dataclass(frozen=True, slots=True)
class PolicySnapshot:
    """Policies, the labels of namespaces, and all endpoints of a cluster."""

    policies: tuple[NetworkPolicy, ...]
    namespaces: Mapping[str, Mapping[str, str]]
    endpoints: tuple[Endpoint, ...]


def node_rules(snapshot: PolicySnapshot, node: str) -> tuple[PodRules, ...]:
    """The rules of the restricted pods on one node, in the order of their addresses."""
    held = (one for one in snapshot.endpoints if one.node == node)
    rules = (_pod_rules(snapshot, one) for one in held)
    restricted = (one for one in rules if one.ingress is not None or one.egress is not None)
    return tuple(sorted(restricted, key=lambda one: one.address))


def _pod_rules(snapshot: PolicySnapshot, pod: Endpoint) -> PodRules:
    policies = [
        one
        for one in snapshot.policies
        if one.meta.namespace == pod.namespace and one.spec.pod_selector.matches(pod.labels)
    ]
    inward = [one for one in policies if "Ingress" in _directions(one)]
    outward = [one for one in policies if "Egress" in _directions(one)]
    ingress = (
        allowed
        for policy in inward
        for rule in policy.spec.ingress
        for allowed in _allowed(snapshot, policy.meta.namespace, rule.peers, rule.ports, target=pod)
    )
    egress = (
        allowed
        for policy in outward
        for rule in policy.spec.egress
        for allowed in _allowed(snapshot, policy.meta.namespace, rule.peers, rule.ports)
    )
    return PodRules(
        pod.address,
        tuple(sorted(set(ingress))) if inward else None,
        tuple(sorted(set(egress))) if outward else None,
    )


def _directions(policy: NetworkPolicy) -> tuple[str, ...]:
    """A policy that names no direction holds ingress, and egress too where it has rules for it."""
    implied = ("Ingress", "Egress") if policy.spec.egress else ("Ingress",)
    return policy.spec.policy_types or implied


def _allowed(
    snapshot: PolicySnapshot,
    namespace: str,
    peers: tuple[PolicyPeer, ...],
    ports: tuple[PolicyPort, ...],
    target: Endpoint | None = None,
) -> Iterator[Allowed]:
    """Connections that one rule allows. Names of ports are those of `target`, or of each peer where there is none."""
    # Ranges of IPv6 have no pods here.
    blocks = [peer.ip_block for peer in peers if peer.ip_block is not None and ":" not in peer.ip_block.cidr]
    ranges = [Allowed((one.cidr,), tuple(sorted(one.excluded))) for one in blocks] if peers else [Allowed()]
    for one in ranges:
        for protocol, numbers in _numbers(ports, target):
            yield Allowed(one.addresses, one.excluded, protocol, numbers)
    by_port: dict[PortRange, set[str]] = {}
    for one in snapshot.endpoints:
        if _is_selected(snapshot, namespace, peers, one):
            reached = _numbers(ports, target) if target is not None else _served(one, _numbers(ports, one))
            for each in reached:
                by_port.setdefault(each, set()).add(one.address)
    for (protocol, numbers), addresses in by_port.items():
        yield Allowed(tuple(sorted(addresses)), (), protocol, numbers)


def _is_selected(
    snapshot: PolicySnapshot, namespace: str, peers: tuple[PolicyPeer, ...], one: Endpoint
) -> bool:
    labels = snapshot.namespaces.get(one.namespace, {})
    return any(
        (
            one.namespace == namespace
            if peer.namespace_selector is None
            else peer.namespace_selector.matches(labels)
        )
        and (peer.pod_selector or _EVERYTHING).matches(one.labels)
        for peer in peers
        if peer.ip_block is None
    )


def _numbers(ports: tuple[PolicyPort, ...], of: Endpoint | None) -> list[PortRange]:
    """The ports of a rule as numbers. A name that `of` does not serve is no port of it."""
    if not ports:
        return [("", _ALL_PORTS)]
    found: list[PortRange] = []
    for port in ports:
        if port.port is None:
            found.append((port.protocol, _ALL_PORTS))
        elif isinstance(port.port, int):
            found.append((port.protocol, (port.port, port.end_port or port.port)))
        else:
            wanted = (port.protocol, port.port)
            served = of.serves if of is not None else ()
            found += [(kind, (number, number)) for kind, name, number in served if (kind, name) == wanted]
    return found


def _served(one: Endpoint, ports: list[PortRange]) -> list[PortRange]:
    """The ports that an endpoint with `only` some of them has in these ranges."""
    if not one.only:
        return ports
    return [
        (kind, (number, number))
        for kind, _, number in one.serves
        for protocol, (low, high) in ports
        if protocol in {"", kind} and low <= number <= high
    ]
