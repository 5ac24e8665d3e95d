"""Containers as Pods: one Pod for each attempt, on whatever node the scheduler finds.

What an attempt is stays in `container`. Scale groups and slices are the platform's.
"""

from neorion.iris.adapters.runtimes.kubernetes.engine import PodEngine
from neorion.iris.adapters.runtimes.kubernetes.settings import (
    POD_NAME_ENV,
    POD_UID_ENV,
    TASK_PODS_ACCOUNT,
    PodOwner,
    PodSettings,
)

__all__ = [
    "POD_NAME_ENV",
    "POD_UID_ENV",
    "TASK_PODS_ACCOUNT",
    "PodEngine",
    "PodOwner",
    "PodSettings",
]
