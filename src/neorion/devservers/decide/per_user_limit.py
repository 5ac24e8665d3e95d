"""A flavor of which each user may have only so many: who stands on it keeps it, and then who came first."""

from collections.abc import Iterable

from neorion.devservers.decide.decision import Observed
from neorion.devservers.model import ConditionType
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject


def max_per_user(flavor: DevServerFlavor | None) -> int | None:
    """Servers of the flavor that one user may have; None without a limit."""
    limits = flavor.spec.limits if flavor else None
    return limits.max_per_user if limits else None


def over_limit_reason(seen: Observed) -> str | None:
    """Why the server does not get its flavor; None if it does."""
    allowed = max_per_user(seen.flavor)
    if allowed is None or seen.ahead < allowed:
        return None
    flavor = seen.server.spec.flavor
    return f"{flavor} allows {allowed} servers for each user; delete another one, or take another flavor."


def flavors_of(server: DevServerObject) -> tuple[str, ...]:
    """The flavor it asks for, and then the one it still runs on, if that is another."""
    asked, told = server.spec.flavor, server.status.flavor
    if told is None or told.applied == asked or not server.spec.running:
        return (asked,)
    return asked, told.applied


def servers_before(server: DevServerObject, others: Iterable[DevServerObject]) -> int:
    """Number of the user's other servers with this flavor that come before this one."""
    flavor = server.spec.flavor
    mine = _rank(server, flavor)
    return sum(1 for other in others if other.meta.deleted is None and _rank(other, flavor) < mine)


def _rank(server: DevServerObject, flavor: str) -> tuple[bool, str, str]:
    return not _holds_flavor(server, flavor), server.meta.created or "", server.meta.name


def _holds_flavor(server: DevServerObject, flavor: str) -> bool:
    status = server.status
    if status.flavor is None or status.flavor.applied != flavor:
        return False
    # One that was refused at its first start has no other flavor to tell of.
    accepted = any(one.type is ConditionType.FLAVOR and one.status == "True" for one in status.conditions)
    return accepted or server.spec.flavor != flavor
