"""Judgements about network interfaces that a driver publishes as devices and pods attach to by claims."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from neorion.conformance.decide.dra import devices_of
from neorion.conformance.model import Assertion

Json = Mapping[str, Any]

# Drivers of dynamic resource allocation whose devices are network interfaces.
DRIVERS: Final = ("dra.net", "sriovnetwork.k8snetworkplumbingwg.io", "rdma.dra.net")


class Interface(Struct, frozen=True):
    """One interface that a driver offers. `selector` is a CEL expression that only devices like it meet."""

    driver: str
    pool: str
    device: str
    node: str
    attribute: str
    selector: str

    @property
    def path(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


def interfaces(slices: Iterable[Json]) -> list[Interface]:
    """Every interface that has an attribute by which it can be selected."""
    return [
        found
        for each in slices
        if each["spec"]["driver"] in DRIVERS and each["spec"].get("nodeName")
        for device in each["spec"].get("devices", ())
        if (found := _interface(each["spec"], device)) is not None
    ]


def like(found: Sequence[Interface], one: Interface) -> list[Interface]:
    """The interfaces that the selector of one of them picks."""
    return [each for each in found if each.selector == one.selector]


def published(count: int, total: int) -> Assertion:
    return Assertion(
        "interfaces are published with their characteristics",
        0 < count == total,
        f"{count} of {total} interfaces have an attribute.",
    )


def attached_where_it_is(pod: Json, claim: Json | None, matching: Sequence[Interface]) -> Assertion:
    """The claim has a matching interface, and the pod runs on the node of that interface."""
    devices = devices_of(claim) if claim is not None else []
    nodes = {each.path: each.node for each in matching}
    node = str(pod["spec"].get("nodeName", ""))
    held = len(devices) == 1 and bool(node) and nodes.get(devices[0]) == node
    return Assertion(
        "a pod gets a matching interface on the node that has it",
        held,
        f"The claim has {', '.join(devices) or 'no interface'}, the pod is on {node or 'no node'}.",
    )


def has_second_interface(names: Sequence[str] | None) -> Assertion:
    """`names` are the interfaces that the container sees; None if its probe did not finish."""
    found = [each for each in names or () if each != "lo"]
    return Assertion(
        "the pod has a second interface",
        len(found) >= 2,
        f"It sees {', '.join(found) or 'no interface'} beside the loopback one.",
    )


def _interface(spec: Json, device: Json) -> Interface | None:
    for name, value in sorted(device.get("attributes", {}).items()):
        kind, content = next(iter(value.items()))
        literal = f'"{content}"' if kind == "string" else str(content).lower()
        domain, _, key = name.rpartition("/")
        if kind != "version":
            selector = f'device.attributes["{domain or spec["driver"]}"].{key} == {literal}'
            return Interface(
                spec["driver"], spec["pool"]["name"], device["name"], spec["nodeName"], name, selector
            )
    return None
