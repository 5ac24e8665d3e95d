"""How a cluster and its CoreWeave say no."""

from neorion.capacity.coreweave.pools import NodePool
from neorion.capacity.provider import (
    no_capacity,
    no_machine,
    not_allowed,
    quota,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Conflict, Denied, Error, Invalid, NotFound, QuotaExceeded, Retry
from neorion.keel.kube import UnknownKind

# CoreWeave's word in refusals of pools that would exceed what the organisation may have.
_QUOTA = "quota"


def refusal(provider: str, scope: str, error: Error) -> Error:
    """What a failed call to the API server means. `scope` is the region, or the machine that was asked about."""
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
    """Why CoreWeave will not fill this pool, if it says so."""
    for kind, say in (("Valid", None), ("Quota", quota), ("Capacity", no_capacity)):
        said = pool.says(kind)
        if said is None or said.holds:
            continue
        words = f"{said.reason}: {said.message}"
        return say(provider, scope, words) if say is not None else refused(provider, words)
    return None


def promised(pool: NodePool) -> bool:
    """Whether CoreWeave has said that there is such a machine and that we may have it."""
    return all(
        (said := pool.says(kind)) is not None and said.holds for kind in ("Valid", "Quota", "Capacity")
    )
