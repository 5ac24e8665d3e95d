"""A flavor of which each user may have only so many: who stands on it keeps it, and then who came first."""

from collections.abc import Iterable

from neorion.devservers.decide.decision import Observed
from neorion.devservers.model import ConditionType
from neorion.devservers.model.objects import DevServer, DevServerFlavor


def most(flavor: DevServerFlavor | None) -> int | None:
    """How many servers of one user the flavor allows; None where nobody counts."""
    limits = flavor.spec.limits if flavor else None
    return limits.max_per_user if limits else None


def rationed(seen: Observed) -> str | None:
    """Why the server does not get its flavor; None if it does."""
    allowed = most(seen.flavor)
    if allowed is None or seen.ahead < allowed:
        return None
    flavor = seen.server.spec.flavor
    return f"{flavor} allows {allowed} servers for each user; delete another one, or take another flavor."


def ahead(server: DevServer, others: Iterable[DevServer]) -> int:
    """How many of the others, which are the same user's and ask for the same flavor, come before this one."""
    mine = _rank(server)
    return sum(1 for other in others if other.meta.deleted is None and _rank(other) < mine)


def _rank(server: DevServer) -> tuple[bool, str, str]:
    return not _stands(server), server.meta.created or "", server.meta.name


def _stands(server: DevServer) -> bool:
    status = server.status
    accepted = any(one.type is ConditionType.FLAVOR and one.status == "True" for one in status.conditions)
    return accepted and status.flavor is not None and status.flavor.applied == server.spec.flavor
