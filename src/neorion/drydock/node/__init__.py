"""Real nodes on this machine: namespaces around a container runtime, a kubelet and a kube-proxy.

The network they hang on, the images they pull and the devices they offer have rooms of their own.
"""

from neorion.drydock.node.lifecycle import (
    add,
    bring_up,
    ensure_nodes,
    has_own_network,
    init_pid,
    nodes_up,
    remove,
)
from neorion.drydock.node.record import Node, cluster_cgroup, find, nodes
from neorion.drydock.node.spec import NodeSpec, Taint, TaintEffect

__all__ = [
    "Node",
    "NodeSpec",
    "Taint",
    "TaintEffect",
    "add",
    "bring_up",
    "cluster_cgroup",
    "ensure_nodes",
    "find",
    "has_own_network",
    "init_pid",
    "nodes",
    "nodes_up",
    "remove",
]
