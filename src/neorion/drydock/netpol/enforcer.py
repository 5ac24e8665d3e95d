"""Writes the rules of NetworkPolicies into the network namespaces of real nodes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from neorion.drydock.layout import Layout
from neorion.drydock.machine import ask
from neorion.drydock.netpol.decide import Endpoint, PolicySnapshot, endpoint, node_rules
from neorion.drydock.netpol.policy_types import NETWORK_POLICY, POLICY_POD, PolicyPod
from neorion.drydock.netpol.ruleset import ruleset
from neorion.drydock.node import Node, has_own_network, init_pid, nodes
from neorion.keel.base import Duration, NotFound, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.kube import KubeApi, KubeObject
from neorion.keel.kube.control import Controller, InformerFactory, Operator
from neorion.keel.kube.core import NAMESPACE, NODE
from neorion.keel.telemetry import logger

log = logger(__name__)

# A node that was started again has lost its table.
_AGAIN: Final = Duration.of(seconds=2)
_DNS: Final = (("UDP", "dns-udp", 53), ("TCP", "dns-tcp", 53))
# Packets between two pods of one node stay on its bridge, and pass the tables only with this.
_BRIDGE: Final = "net/bridge/bridge-nf-call-iptables"


class Enforcer:
    """One key stands for all nodes: a policy of one may name the pods of another."""

    def __init__(self, api: KubeApi, layout: Layout, clock: Clock, rng: Rng) -> None:
        informers = InformerFactory(api, clock, rng)
        self._layout = layout
        self._policies = informers.of(NETWORK_POLICY)
        self._pods = informers.of(POLICY_POD)
        self._namespaces = informers.of(NAMESPACE)
        # What each node has, by the process that holds its network.
        self._written: dict[str, tuple[int, str]] = {}
        controller = Controller("network policies", self._reconcile, clock, rng, workers=1)
        controller.watch(self._policies, self._key)
        controller.watch(self._pods, self._key, _is_moved)
        controller.watch(self._namespaces, self._key, lambda old, new: old.meta.labels != new.meta.labels)
        controller.watch(informers.of(NODE), self._key, lambda _old, _new: False)
        self.operator = Operator(informers, [controller])

    def _key(self, _object: KubeObject) -> Iterable[str]:
        return (self._layout.name,)

    async def _reconcile(self, _key: str) -> Duration | None:
        snapshot = PolicySnapshot(
            tuple(self._policies),
            {one.meta.name: one.meta.labels for one in self._namespaces},
            (*(endpoint(pod) for pod in self._pods if pod.has_address), self._dns()),
        )
        for node in nodes(self._layout):
            try:
                pid = init_pid(self._layout, node.name)
            except NotFound:
                continue
            wanted = ruleset(node_rules(snapshot, node.name), str(node.pods))
            if self._written.get(node.name) != (pid, wanted) and has_own_network(pid):
                await self._write(node, pid, wanted)
        return _AGAIN

    async def _write(self, node: Node, pid: int, rules: str) -> None:
        enter = ["nsenter", f"--net=/proc/{pid}/ns/net"]
        if not Path("/proc/sys", _BRIDGE).exists():
            raise Retry(
                "network.no_bridge_filter",
                "Packets between Pods of one node cannot be filtered.",
                hint="Load the kernel module br_netfilter.",
            )
        await ask([*enter, "sh", "-c", f"echo 1 >/proc/sys/{_BRIDGE}"])
        await ask([*enter, "nft", "-f", "-"], say=rules)
        self._written[node.name] = (pid, rules)
        log.info("policies written", node=node.name, lines=rules.count("\n"))

    def _dns(self) -> Endpoint:
        """CoreDNS runs on this machine, and policies mean it as the pods of kube-system that it stands for."""
        labels = {"k8s-app": "kube-dns"}
        return Endpoint("kube-system", labels, str(self._layout.addresses.host), serves=_DNS, only=True)


def _is_moved(old: PolicyPod, new: PolicyPod) -> bool:
    return old.has_address != new.has_address or endpoint(old) != endpoint(new)
