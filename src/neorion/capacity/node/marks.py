"""Labels, taints and conditions on nodes, which all systems share."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

PREFIX: Final = "navarch.dev"

# Labels. POOL also occurs on workloads that require nodes of a pool.
POOL: Final = f"{PREFIX}/pool"
NODE_ID: Final = f"{PREFIX}/node-id"
PROVIDER: Final = f"{PREFIX}/provider"
# On a node: a person excludes it from navarch's control.
DO_NOT_DISRUPT: Final = f"{PREFIX}/hands-off"

# Keys of taints.
CORDONED: Final = f"{PREFIX}/cordoned"
DRAINING: Final = f"{PREFIX}/draining"
SPARE: Final = f"{PREFIX}/spare"
UNHEALTHY: Final = f"{PREFIX}/unhealthy"
VERIFYING: Final = f"{PREFIX}/verifying"

# Types of conditions. The last four are Kubernetes' own names for the life of a node.
GPU_HEALTHY: Final = "NavarchGpuHealthy"
MAINTENANCE_PLANNED: Final = "MaintenancePlanned"
MAINTENANCE_IN_PROGRESS: Final = "MaintenanceInProgress"
DRAIN_IN_PROGRESS: Final = "DrainInProgress"
DRAINED: Final = "Drained"

# Kubernetes' limit for the value of a taint.
_VALUE_MAX = 63


class TaintEffect(StrEnum):
    """The effect of a taint on Pods that do not tolerate it."""

    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    """Keeps workloads off a node; `value` is the reason in one word."""

    key: str
    effect: TaintEffect
    value: str = ""

    @classmethod
    def with_reason(cls, key: str, effect: TaintEffect, why: str) -> "Taint":
        """A taint with the reason as a valid value: letters, digits, dots, dashes."""
        word = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in why)
        return cls(key, effect, word[:_VALUE_MAX].strip("._-"))


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a node, for people and for other controllers."""

    type: str
    status: bool
    reason: str
    message: str = ""
