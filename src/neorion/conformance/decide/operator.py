"""Judgements about an operator: its definitions, its webhook, and how it reconciles."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from neorion.conformance.model import Assertion

Json = Mapping[str, Any]


def established(definitions: Iterable[Json], names: Sequence[str]) -> Assertion:
    good = {each["metadata"]["name"] for each in definitions if _condition(each, "Established") == "True"}
    lacking = sorted(set(names) - good)
    detail = (
        f"Not established: {', '.join(lacking)}." if lacking else f"{len(names)} definitions are established."
    )
    return Assertion("the definitions are established", not lacking, detail)


def refused_by(webhook: str, message: str) -> Assertion:
    """`message` is the API server's; empty if it took the object. A webhook that cannot be called refuses nothing."""
    refused = f'admission webhook "{webhook}" denied the request' in message
    said = message or "The API server took the object."
    return Assertion("the webhook refuses a wrong object", refused, said[:400])


def accepted(message: str) -> Assertion:
    return Assertion(
        "the corrected object is accepted",
        not message,
        message[:400] or "The API server took the corrected object.",
    )


def has_child(owner_uid: str, children: Iterable[Json], seconds: float) -> Assertion:
    """One child, owned by this very object."""
    owned = [child for child in children if owner_uid in owners_of(child)]
    return Assertion(
        "an object is reconciled into a child that it owns",
        len(owned) == 1,
        f"{len(owned)} children are owned by the object after {seconds:.1f} s.",
    )


def has_condition(name: str, thing: Json | None, kind: str, status: str) -> Assertion:
    """The condition has the status, and was made for the object's newest generation where it says for which."""
    found = _found(thing or {}, kind)
    generation = (thing or {}).get("metadata", {}).get("generation")
    observed = found.get("observedGeneration", generation)
    held = found.get("status") == status and observed == generation
    return Assertion(
        name, held, f"{kind} is {found.get('status', 'absent')} {found.get('reason', '')}".strip() + "."
    )


def recreated(before: str, children: Sequence[Json]) -> Assertion:
    uids = [
        str(child["metadata"]["uid"]) for child in children if not child["metadata"].get("deletionTimestamp")
    ]
    held = len(uids) == 1 and uids[0] != before
    return Assertion(
        "a deleted child comes back", held, f"{len(uids)} children are there after the deletion."
    )


def all_gone(children: Sequence[Json]) -> Assertion:
    return Assertion("children go with their object", not children, f"{len(children)} children are left.")


def owners_of(child: Json) -> set[str]:
    owners: list[Json] = child["metadata"].get("ownerReferences", [])
    return {str(owner["uid"]) for owner in owners}


def condition_of(thing: Json, kind: str) -> str:
    return _condition(thing, kind)


def _condition(thing: Json, kind: str) -> str:
    return str(_found(thing, kind).get("status", ""))


def _found(thing: Json, kind: str) -> Json:
    conditions: list[Json] = thing.get("status", {}).get("conditions", [])
    found = [each for each in conditions if each["type"] == kind]
    return found[0] if found else dict[str, Any]()
