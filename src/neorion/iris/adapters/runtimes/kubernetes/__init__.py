"""Containers as Pods: one Pod for each attempt, on whatever node the scheduler finds."""

from neorion.iris.adapters.runtimes.kubernetes.engine import PodEngine
from neorion.iris.adapters.runtimes.kubernetes.settings import PodOwner, PodSettings

__all__ = ["PodEngine", "PodOwner", "PodSettings"]
