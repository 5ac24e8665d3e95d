"""Supply for a gang across slices: one scale group that is large enough, or several that share the gang's attribute."""

from collections.abc import Sequence

from neorion.iris.decide.scale_group import ScaleGroupState
from neorion.iris.model import PendingReason, Resources

# Additional slices per group.
Basket = list[tuple[ScaleGroupState, int]]


class GangSupply:
    """Groups whose workers have the same value of a gang's attribute, in the order of creation."""

    def __init__(self, value: str, groups: Sequence[ScaleGroupState]) -> None:
        self.value = value
        self.groups = groups

    def fill(self, asks: Resources, tasks: int) -> bool:
        """Takes room for all of the tasks on slices that are on their way, or for none."""
        if self._coming(asks, tasks) < tasks:
            return False
        for group in self.groups:
            tasks -= group.bins.fill(asks, "", tasks)
        return True

    def could_hold(self, asks: Resources, tasks: int) -> bool:
        """True if the tasks would fit when every group had its maximum of slices."""
        most = sum(group.bins.hold(asks, group.view.shape.slices) for group in self.groups)
        return tasks - self._coming(asks, tasks) <= most

    def basket(self, asks: Resources, tasks: int) -> Basket | None:
        """Slices to create for all of the tasks, besides those on their way; None if the groups may not grow enough now."""
        lacks = tasks - self._coming(asks, tasks)
        found: Basket = []
        for group in self.groups:
            each = group.bins.hold(asks, 1)
            slices = min(group.may_create(), -(-lacks // each))
            if slices > 0:
                found.append((group, slices))
                lacks -= slices * each
        return None if lacks > 0 else found

    def part(self, asks: Resources, tasks: int) -> Basket | None:
        """Slices to create when not all can be created, because otherwise the gang would wait forever.

        After a failure this is one slice, as a trial. If other jobs use some of the slices, these are the slices that
        the gang needs in addition to all existing ones: workers can be reserved only when all of them exist.
        """
        troubled = [group for group in self.groups if group.view.trouble is not None]
        if troubled:
            return [(group, may) for group in troubled if (may := group.may_create())]
        lacks = tasks - sum(group.bins.hold(asks, len(group.ready)) for group in self.groups)
        return self.basket(asks, lacks) if lacks > 0 else None

    def obstacle(self) -> PendingReason:
        """Reason for no basket: a failure, otherwise the use of the slices by other jobs."""
        troubled = (group for group in self.groups if group.view.trouble is not None)
        in_use = (group for group in self.groups if group.view.slices)
        return next(troubled, next(in_use, self.groups[0])).obstacle()

    def _coming(self, asks: Resources, tasks: int) -> int:
        return sum(group.bins.room(asks, tasks) for group in self.groups)


def gang_supplies(groups: Sequence[ScaleGroupState], key: str) -> list[GangSupply]:
    """Each group alone, followed by the groups that share one value of the attribute."""
    alike: dict[str, list[ScaleGroupState]] = {}
    for group in groups:
        alike.setdefault(group.view.shape.attributes[key], []).append(group)
    alone = [GangSupply(group.view.shape.attributes[key], [group]) for group in groups]
    return alone + [GangSupply(value, found) for value, found in alike.items() if len(found) > 1]
