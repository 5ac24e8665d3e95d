"""Nodes: how a machine, a Kubernetes node and an agent are known to be one, and the marks by which systems meet.

`marks` is the only contract between the systems. Pure: writing marks to an API server belongs to the systems' adapters.
"""

from neorion.capacity.node.identity import IdentityClaim, KnownNode, ProviderId, resolve
from neorion.capacity.node.marks import Condition, Taint, TaintEffect

__all__ = ["Condition", "IdentityClaim", "KnownNode", "ProviderId", "Taint", "TaintEffect", "resolve"]
