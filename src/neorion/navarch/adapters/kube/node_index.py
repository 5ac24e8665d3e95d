"""Matches Kubernetes nodes with nodes of the fleet.

The label that navarch wrote comes first. Before it exists, the node's name, its providerID and its host name must match
exactly one node of the fleet. A node that matches two is not used, so that an agent cannot act for another's node.
"""

from collections.abc import Iterable

from neorion.capacity.node import ProviderId, marks
from neorion.keel.base import Conflict
from neorion.keel.kube import ObjectKey
from neorion.keel.kube.control import Informer, by_label
from neorion.keel.kube.core import Node as KubeNode
from neorion.navarch.model import Node, NodeId

_HOST_NAME = "kubernetes.io/hostname"


class KubeNodeIndex:
    """The nodes that the fleet has told of, matched with a mirror of the cluster's."""

    def __init__(self, nodes: Informer[KubeNode]) -> None:
        self._nodes = nodes
        self._labelled = nodes.index(by_label(marks.NODE_ID))
        self._called = nodes.index(_names_of)
        self._known: dict[NodeId, Node] = {}
        self._by_name: dict[str, set[NodeId]] = {}

    def learn(self, node: Node) -> None:
        self.forget(node.id)
        self._known[node.id] = node
        for name in _names(node):
            self._by_name.setdefault(name, set()).add(node.id)

    def forget(self, node_id: NodeId) -> None:
        before = self._known.pop(node_id, None)
        for name in _names(before) if before else ():
            self._by_name[name].discard(node_id)
            if not self._by_name[name]:
                del self._by_name[name]

    def owner(self, kube: KubeNode) -> Node | None:
        """The node of the fleet that this Kubernetes node is, if exactly one fits."""
        labelled = self._known.get(NodeId(kube.meta.labels.get(marks.NODE_ID, "")))
        if labelled is not None:
            return labelled
        fitting = set[NodeId]().union(*(self._by_name.get(name, ()) for name in _names_of(kube)))
        return self._known[fitting.pop()] if len(fitting) == 1 else None

    def find(self, node: Node) -> KubeNode | None:
        """None for one that has not joined the cluster."""
        candidates = {kube.meta.key: kube for kube in self._labelled.get(node.id)}
        for name in _names(node):
            candidates |= {kube.meta.key: kube for kube in self._called.get(name)}
        mine = [kube for kube in candidates.values() if _is(self.owner(kube), node)]
        if len(mine) > 1:
            names = " and ".join(sorted(kube.meta.name for kube in mine)[:2])
            raise Conflict(
                "navarch.two_kube_nodes",
                f"Two nodes of the cluster could be {node.id}: {names}.",
                hint=f"Label the right one {marks.NODE_ID}={node.id}, or delete the other.",
            )
        return mine[0] if mine else None

    def named(self, key: ObjectKey) -> KubeNode | None:
        return self._nodes.get(key)

    def aliases(self, name: str) -> frozenset[str]:
        """All names of the machine of a Kubernetes node; empty if there is no such node."""
        kube = self.named(ObjectKey("", name))
        if kube is None:
            return frozenset()
        return frozenset({*_names_of(kube), *filter(None, [kube.meta.labels.get(marks.NODE_ID)])})


def _is(owner: Node | None, node: Node) -> bool:
    return owner is not None and owner.id == node.id


def _names(node: Node) -> Iterable[str]:
    said = (node.id, node.machine, node.machine_name, node.kube_name, node.agent, node.purchase)
    return {str(name) for name in said if name}


def _names_of(kube: KubeNode) -> Iterable[str]:
    """Names of the machine in the cluster: the node's, the host's and the cloud's."""
    parsed = ProviderId.parse(kube.spec.provider_id)
    names = (kube.meta.name, kube.meta.labels.get(_HOST_NAME, ""), parsed.machine if parsed else "")
    return {name for name in names if name}
