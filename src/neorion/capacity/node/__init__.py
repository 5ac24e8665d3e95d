"""Nodes: how a machine, a Kubernetes node and an agent are known to be one, and the marks by which systems meet.

`marks` is the only contract between the systems. Pure: writing marks to an API server belongs to the systems' adapters.
"""

from neorion.capacity.node.identity import Claim, Known, ProviderId, resolve
from neorion.capacity.node.marks import Condition, Effect, Taint

__all__ = ["Claim", "Condition", "Effect", "Known", "ProviderId", "Taint", "resolve"]
