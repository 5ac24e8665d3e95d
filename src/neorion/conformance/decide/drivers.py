"""Judgements about drivers: the version that is advertised, and the version that a container sees."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from neorion.conformance.model import Assertion
from neorion.conformance.model.profile import AcceleratorProfile

Json = Mapping[str, Any]


class Advertised(Struct, frozen=True):
    """The driver that a node advertises. `versions` holds one for each device, or one for the node."""

    versions: tuple[str, ...]
    source: str
    # How many devices the driver publishes; None where versions come from a label.
    devices: int | None = None


def advertised(node: Json, slices: Iterable[Json], profile: AcceleratorProfile) -> Advertised | None:
    """Attributes of devices come first; a label of the node is what older drivers have."""
    name = node["metadata"]["name"]
    devices: list[Json] = [
        device
        for each in slices
        if each["spec"].get("nodeName") == name and each["spec"].get("driver") == profile.driver
        for device in each["spec"].get("devices", ())
    ]
    versions = tuple(_version(device, profile) for device in devices) if profile.driver else ()
    if any(versions):
        return Advertised(versions, "attributes of devices", len(devices))
    label = node["metadata"].get("labels", {}).get(profile.version.label, "") if profile.version.label else ""
    return Advertised((label,), "a label of the node") if label else None


def agree(found: Advertised) -> Assertion:
    versions = sorted(set(found.versions))
    return Assertion(
        "all devices of the node have one driver version",
        len(versions) == 1 and bool(versions[0]),
        f"The {found.source} say {', '.join(each or 'nothing' for each in versions)}.",
    )


def counted(found: Advertised, allocatable: int) -> Assertion:
    return Assertion(
        "the driver publishes as many devices as the node offers",
        found.devices == allocatable,
        f"{found.devices} devices are published, {allocatable} are allocatable.",
    )


def same_version(versions: Sequence[str], seen: str) -> Assertion:
    """The version as a container reads it is the advertised one."""
    said = sorted(set(versions))
    return Assertion(
        "a container sees the advertised driver version",
        bool(seen) and said == [seen],
        f"Advertised: {', '.join(said) or 'nothing'}; seen: {seen or 'nothing'}.",
    )


def _version(device: Json, profile: AcceleratorProfile) -> str:
    value = device.get("attributes", {}).get(profile.version.attribute, {})
    return str(value.get("version", value.get("string", "")))
