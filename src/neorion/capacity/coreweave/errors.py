"""Refusals of a cluster and of CoreWeave."""

from typing import Final

from neorion.capacity.coreweave.nodepools import NodePool
from neorion.capacity.provider import (
    no_capacity,
    no_machine,
    not_allowed,
    quota,
    quota_not_set,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Conflict, Denied, Error, Invalid, NoCapacity, NotFound, QuotaExceeded, Retry
from neorion.keel.kube import Condition, UnknownKind

# CoreWeave's word in refusals of pools that would exceed what the organisation may have.
_QUOTA = "quota"
# The condition was renamed: clusters show the one or the other.
VALIDATED: Final = ("Validated", "Valid")
# The reason of a Quota that is False for ever: the limit of the organisation is 0.
_NOT_SET: Final = "NotSet"
# Reasons of a Capacity that is False for now.
QUEUED: Final = frozenset({"QueuedAwaitingCapacity", "CapacityUnknown"})


def refusal(provider: str, scope: str, error: Error) -> Error:
    """The meaning of a failed call to the API server. `scope` is the region, or the machine that was asked about."""
    words = error.sentence
    match error:
        case UnknownKind():
            told: Error = refused(provider, "this cluster knows no NodePools")
        case NotFound():
            told = no_machine(provider, scope)
        case Denied() | Invalid() | QuotaExceeded() if _QUOTA in words.lower():
            told = quota(provider, scope, words)
        case Denied():
            told = not_allowed(provider, words)
        case Retry() if error.code == "kube.throttled":
            told = rate_limited(provider, error.after, words)
        case Retry() | Conflict():
            told = unknown_outcome(provider, words)
        case _:
            told = refused(provider, words)
    return told


def verdict(provider: str, scope: str, pool: NodePool) -> Error | None:
    """Why CoreWeave will not fill this pool, if it says so. A pool that is queued is not refused."""
    for kinds, say in ((VALIDATED, None), (("Quota",), _no_quota), (("Capacity",), no_capacity)):
        said = _find_condition(pool, kinds)
        if said is None or said.holds or said.reason in QUEUED:
            continue
        words = f"{said.reason}: {said.message}"
        return say(provider, scope, words) if say is not None else refused(provider, words)
    return None


def _no_quota(provider: str, scope: str, words: str) -> Error:
    return (quota_not_set if words.startswith(_NOT_SET) else quota)(provider, scope, words)


def queued(provider: str, scope: str, pool: NodePool) -> NoCapacity | None:
    """Why the pool waits, if it is queued: CoreWeave fills it by itself when machines come free."""
    said = _find_condition(pool, ("Capacity",))
    if said is None or said.holds or said.reason not in QUEUED:
        return None
    return no_capacity(provider, scope, f"{said.reason}: {said.message}")


def promised(pool: NodePool) -> bool:
    """True when CoreWeave has accepted the pool, and has quota and capacity for it."""
    return all(
        (said := _find_condition(pool, kinds)) is not None and said.holds
        for kinds in (VALIDATED, ("Quota",), ("Capacity",))
    )


def _find_condition(pool: NodePool, kinds: tuple[str, ...]) -> Condition | None:
    return next((said for kind in kinds if (said := pool.says(kind)) is not None), None)
