"""Judgements about dynamic resource allocation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]

KINDS: Final = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices")
_VERBS: Final = frozenset({"create", "get", "list", "watch", "update", "patch", "delete"})


def serves_all(resources: Mapping[str, set[str]]) -> Assertion:
    """The four kinds in version v1, each with every verb."""
    lacking = {name: sorted(_VERBS - resources.get(name, set())) for name in KINDS}
    words = [f"{name} lacks {', '.join(verbs)}" for name, verbs in lacking.items() if verbs]
    detail = f"{'; '.join(words)}." if words else "All four kinds are served with every verb."
    return Assertion("resource.k8s.io/v1 serves its four kinds", not words, detail)


def devices_of(claim: Json) -> list[str]:
    """The devices that a claim got, as driver/pool/device."""
    results: list[Json] = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [f"{each['driver']}/{each['pool']}/{each['device']}" for each in results]


def got_one_of(name: str, claim: Json | None, allowed: Iterable[str]) -> Assertion:
    """The claim has exactly one device, and it is one of those that its selector matches."""
    devices = devices_of(claim) if claim is not None else []
    held = len(devices) == 1 and devices[0] in set(allowed)
    return Assertion(name, held, f"The claim has {', '.join(devices) or 'no device'}.")


def waits(name: str, claim: Json | None, seconds: float) -> Assertion:
    """The claim is there and has no device after a whole window."""
    devices = devices_of(claim) if claim is not None else []
    return Assertion(
        name,
        claim is not None and not devices,
        f"After {seconds:g} s the claim has {', '.join(devices) or 'no device'}.",
    )


def together(pods: Sequence[Json]) -> Assertion:
    nodes = {pod["spec"].get("nodeName", "") for pod in pods}
    held = len(pods) == 2 and len(nodes) == 1 and "" not in nodes
    return Assertion(
        "two pods share one claim", held, f"{len(pods)} pods run on {', '.join(sorted(nodes)) or 'no node'}."
    )
