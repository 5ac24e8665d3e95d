"""Judgements about shares of one device: how many are given out, of which device, and what the last one leaves."""

from collections.abc import Mapping, Sequence
from typing import Any

from neorion.conformance.decide.dra import devices_of
from neorion.conformance.model import Assertion

Json = Mapping[str, Any]


def each_has_a_share(name: str, claims: Sequence[Json | None], allowed: Sequence[str]) -> Assertion:
    """Every claim has exactly one of the devices that stand for shares, and no two claims have the same one."""
    got = [devices_of(claim) if claim is not None else [] for claim in claims]
    devices = [device for devices in got for device in devices]
    held = all(len(each) == 1 for each in got) and len(set(devices)) == len(got)
    held = held and set(devices) <= set(allowed)
    return Assertion(name, held, f"{len(got)} claims have {', '.join(devices) or 'no device'}.")


def all_share(name: str, claims: Sequence[Json | None], device: str) -> Assertion:
    """Every claim has the one device, each with a part of its own."""
    got = [devices_of(claim) if claim is not None else [] for claim in claims]
    parts = {part for claim in claims if claim is not None for part in shares_of(claim)}
    held = all(each == [device] for each in got) and len(parts) == len(got)
    return Assertion(
        name, held, f"{sum(each == [device] for each in got)} of {len(got)} claims share {device}."
    )


def shares_of(claim: Json) -> list[str]:
    """The ids of the shares that a claim has of devices that are given out more than once."""
    results: list[Json] = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [str(each["shareID"]) for each in results if each.get("shareID")]
