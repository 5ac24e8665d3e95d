"""Scale groups from which a gang across slices is bought: one that has enough, or several that share the gang's attribute."""

from collections.abc import Sequence

from neorion.iris.decide.scale_group import ScaleGroupState
from neorion.iris.model import PendingReason, Resources

# How many slices more of which group.
Basket = list[tuple[ScaleGroupState, int]]


class GangSupply:
    """Groups whose workers have the same value of a gang's attribute, in the order in which they are bought from."""

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
        """Whether so many more would fit if every group had all the slices it may have."""
        most = sum(group.bins.hold(asks, group.view.shape.slices) for group in self.groups)
        return tasks - self._coming(asks, tasks) <= most

    def basket(self, asks: Resources, tasks: int) -> Basket | None:
        """What makes room for all of the tasks beside what is on its way; None if the groups may not grow by so much now."""
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
        """What is bought where all of it cannot be, or the gang would wait for ever.

        After a trouble that is the one slice that is tried. Where others use some of the slices, it is what the gang lacks
        beside all of them: only when everything is there can a place for it be held.
        """
        troubled = [group for group in self.groups if group.view.trouble is not None]
        if troubled:
            return [(group, may) for group in troubled if (may := group.may_create())]
        lacks = tasks - sum(group.bins.hold(asks, len(group.ready)) for group in self.groups)
        return self.basket(asks, lacks) if lacks > 0 else None

    def obstacle(self) -> PendingReason:
        """Why there is no basket: a trouble, or else that others use slices of these groups."""
        troubled = (group for group in self.groups if group.view.trouble is not None)
        in_use = (group for group in self.groups if group.view.slices)
        return next(troubled, next(in_use, self.groups[0])).obstacle()

    def _coming(self, asks: Resources, tasks: int) -> int:
        return sum(group.bins.room(asks, tasks) for group in self.groups)


def lots_of(groups: Sequence[ScaleGroupState], key: str) -> list[GangSupply]:
    """Each group alone, and then those together that have one value of this attribute."""
    alike: dict[str, list[ScaleGroupState]] = {}
    for group in groups:
        alike.setdefault(group.view.shape.attributes[key], []).append(group)
    alone = [GangSupply(group.view.shape.attributes[key], [group]) for group in groups]
    return alone + [GangSupply(value, found) for value, found in alike.items() if len(found) > 1]
