"""Fault injection for simulated platforms: the same rules for processes on this machine and for a simulation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from neorion.keel.base import Duration, NoCapacity, QuotaExceeded


@dataclass(frozen=True, slots=True)
class FaultProfile:
    """Faults of one scale group.

    It boots machines in `boot_delay`, refuses more than `quota` slices at once, has no capacity for the first
    `no_capacity` requests, never boots the first `stuck` slices, and loses a machine of each `lost_after` it booted.
    """

    boot_delay: Duration = field(default=Duration.of())
    quota: int | None = None
    no_capacity: int = 0
    stuck: int = 0
    lost_after: Duration | None = None


_NO_FAULTS = FaultProfile()


class FaultInjector:
    """Admits or refuses slices by the profile of their group. Counts from the start of the process."""

    def __init__(self, behaviours: Mapping[str, FaultProfile]) -> None:
        self._behaviours = dict(behaviours)

    def of(self, group: str) -> FaultProfile:
        return self._behaviours.get(group, _NO_FAULTS)

    def set_faults(self, group: str, behaviour: FaultProfile) -> None:
        self._behaviours[group] = behaviour

    def admit(self, group: str, existing: int) -> bool:
        """Returns False if the slice will never boot. Raises if the group has no capacity or no quota."""
        now = self.of(group)
        if now.no_capacity:
            self._behaviours[group] = replace(now, no_capacity=now.no_capacity - 1)
            raise NoCapacity(
                "iris.no_capacity",
                f"There is no machine left for a slice of {group}.",
                hint="Another scale group may have some; otherwise wait.",
                scope=group,
            )
        if now.quota is not None and existing >= now.quota:
            raise QuotaExceeded(
                "iris.quota",
                f"The quota of {group} is {now.quota} slices, and they exist.",
                hint="Ask for more quota, or end a slice.",
                scope=group,
            )
        if now.stuck:
            self._behaviours[group] = replace(now, stuck=now.stuck - 1)
        return not now.stuck
