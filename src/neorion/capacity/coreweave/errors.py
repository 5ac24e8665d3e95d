"""Translates errors and conditions of CoreWeave to those of `capacity.provider`."""

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

# Occurs in CoreWeave's errors for pools beyond the organisation's quota.
_QUOTA = "quota"
# The condition was renamed: clusters show the one or the other.
VALIDATED: Final = ("Validated", "Valid")
# The reason of a Quota that is False for ever: the limit of the organisation is 0.
_NOT_SET: Final = "NotSet"
# Reasons of a Capacity that is False for now.
QUEUED: Final = frozenset({"QueuedAwaitingCapacity", "CapacityUnknown"})


def refusal(provider: str, scope: str, error: Error) -> Error:
    """Translates an error of the API server. `scope` is the region or the machine of the call."""
    words = error.sentence
    match error:
        case UnknownKind():
            translated: Error = refused(provider, "this cluster has no NodePools")
        case NotFound():
            translated = no_machine(provider, scope)
        case Denied() | Invalid() | QuotaExceeded() if _QUOTA in words.lower():
            translated = quota(provider, scope, words)
        case Denied():
            translated = not_allowed(provider, words)
        case Retry() if error.code == "kube.throttled":
            translated = rate_limited(provider, error.after, words)
        case Retry() | Conflict():
            translated = unknown_outcome(provider, words)
        case _:
            translated = refused(provider, words)
    return translated


def verdict(provider: str, scope: str, pool: NodePool) -> Error | None:
    """The error of a pool that CoreWeave rejects; None for one that is accepted or queued."""
    for kinds, say in ((VALIDATED, None), (("Quota",), _no_quota), (("Capacity",), no_capacity)):
        condition = _find_condition(pool, kinds)
        if condition is None or condition.holds or condition.reason in QUEUED:
            continue
        words = f"{condition.reason}: {condition.message}"
        return say(provider, scope, words) if say is not None else refused(provider, words)
    return None


def _no_quota(provider: str, scope: str, words: str) -> Error:
    return (quota_not_set if words.startswith(_NOT_SET) else quota)(provider, scope, words)


def queued(provider: str, scope: str, pool: NodePool) -> NoCapacity | None:
    """The error of a queued pool. CoreWeave fills it by itself when machines become free."""
    condition = _find_condition(pool, ("Capacity",))
    if condition is None or condition.holds or condition.reason not in QUEUED:
        return None
    return no_capacity(provider, scope, f"{condition.reason}: {condition.message}")


def promised(pool: NodePool) -> bool:
    """True if CoreWeave has confirmed that the machine exists and may be used."""
    return all(
        (condition := _find_condition(pool, kinds)) is not None and condition.holds
        for kinds in (VALIDATED, ("Quota",), ("Capacity",))
    )


def _find_condition(pool: NodePool, kinds: tuple[str, ...]) -> Condition | None:
    return next((condition for kind in kinds if (condition := pool.says(kind)) is not None), None)
