"""Addresses of a cluster. Every cluster of a machine owns one block, divided the same way."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Final

# The half of 10.0.0.0/8 that machines' own networks use less; 32 blocks of four /16 each.
_NETWORK: Final = IPv4Network("10.128.0.0/9")
_BLOCK_BITS: Final = 14
SLOTS: Final = 2 ** (_BLOCK_BITS - _NETWORK.prefixlen)
# A node's index is the third byte of its pods' addresses.
NODES_MAX: Final = 250


@dataclass(frozen=True, slots=True)
class Addresses:
    """The block of the cluster in `slot`: nodes, pods, Services and simulated pods have a /16 each."""

    slot: int

    def __post_init__(self) -> None:
        if not 0 <= self.slot < SLOTS:
            raise ValueError(f"slot {self.slot}: there are {SLOTS}")

    @property
    def block(self) -> IPv4Network:
        return _subnet(_NETWORK, _BLOCK_BITS, self.slot)

    @property
    def nodes(self) -> IPv4Network:
        return self._quarter(0)

    @property
    def pods(self) -> IPv4Network:
        return self._quarter(1)

    @property
    def services(self) -> IPv4Network:
        return self._quarter(2)

    @property
    def simulated(self) -> IPv4Network:
        """Pods on simulated nodes. No route leads to them."""
        return self._quarter(3)

    @property
    def host(self) -> IPv4Address:
        """The machine itself, as nodes and Pods see it. API server, DNS and registry listen here."""
        return self.nodes[1]

    @property
    def api(self) -> IPv4Address:
        """The Service `kubernetes`, always the first."""
        return self.services[1]

    @property
    def dns(self) -> IPv4Address:
        return self.services[10]

    @property
    def bridge(self) -> str:
        """Made of the slot: a link's name has at most 15 characters, and a cluster's name may have more."""
        return f"drydock{self.slot}"

    def node(self, index: int) -> IPv4Address:
        return self.nodes[256 + _checked(index)]

    def pods_of(self, index: int) -> IPv4Network:
        return _subnet(self.pods, 24, _checked(index))

    def wire(self, index: int) -> str:
        """The machine's end of a node's veth pair."""
        return f"{self.bridge}n{_checked(index)}"

    def _quarter(self, number: int) -> IPv4Network:
        return _subnet(self.block, 16, number)


def reaching_clusters(env: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment with the clusters' addresses added to NO_PROXY."""
    spared = env.get("NO_PROXY") or env.get("no_proxy")
    direct = f"{spared},{_NETWORK}" if spared else str(_NETWORK)
    return {**env, "NO_PROXY": direct, "no_proxy": direct}


def _subnet(network: IPv4Network, prefix: int, number: int) -> IPv4Network:
    return IPv4Network((int(network.network_address) + (number << (32 - prefix)), prefix))


def _checked(index: int) -> int:
    if not 1 <= index <= NODES_MAX:
        raise ValueError(f"node {index}: a cluster has {NODES_MAX} at most")
    return index
