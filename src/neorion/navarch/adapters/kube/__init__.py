"""Kubernetes as the scheduler of the fleet's nodes: marks on nodes, drains, and the queue of pods and workloads.

Which Kubernetes node is which node of the fleet is decided in `roster`, what is written on it in `signs`; nothing here decides
whether a node goes or stays.
"""

from neorion.navarch.adapters.kube.demand import KubeDemand, has_kueue
from neorion.navarch.adapters.kube.drain import DrainRules, LocalData
from neorion.navarch.adapters.kube.scheduler import KubeScheduler

__all__ = ["DrainRules", "KubeDemand", "KubeScheduler", "LocalData", "has_kueue"]
