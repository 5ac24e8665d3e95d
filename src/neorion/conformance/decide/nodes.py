"""The accelerators that nodes offer, those in use, and the kind of each node."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from neorion.conformance.model import Environment

Json = Mapping[str, Any]

_ENDED: Final = frozenset({"Succeeded", "Failed"})
# How the simulators of nodes mark their own.
_SIMULATED: Final = ("kwok.x-k8s.io/node",)


class NodeSupply(Struct, frozen=True):
    """The accelerators of one node."""

    name: str
    hostname: str
    allocatable: int
    free: int
    taints: tuple[dict[str, str], ...]
    environment: Environment


def supplies(
    nodes: Iterable[Json], pods: Sequence[Json], resource: str, *, hardware: bool
) -> list[NodeSupply]:
    """Ready, schedulable nodes that have the resource; those with the most free ones first."""
    used: dict[str, int] = {}
    for pod in pods:
        if pod.get("status", {}).get("phase") not in _ENDED:
            name = pod["spec"].get("nodeName", "")
            used[name] = used.get(name, 0) + requested(pod, resource)
    found = [_supply(node, used, resource, hardware=hardware) for node in nodes if _is_usable(node)]
    return sorted((each for each in found if each.allocatable > 0), key=lambda each: (-each.free, each.name))


def requested(pod: Json, resource: str) -> int:
    """Counts a resource in the requests of a pod's containers. Accelerators are whole numbers."""
    containers: list[Json] = pod["spec"].get("containers", [])
    limits = (each.get("resources", {}).get("limits", {}).get(resource, "0") for each in containers)
    return sum(_whole(limit) for limit in limits)


def environment_of(node: Json, *, hardware: bool) -> Environment:
    """The class of a node: simulated nodes have a mark, and `hardware` states that devices are real."""
    annotations: Mapping[str, str] = node["metadata"].get("annotations", {})
    if any(mark in annotations for mark in _SIMULATED):
        return Environment.SIMULATED
    return Environment.HARDWARE if hardware else Environment.EMULATED


def worst(environments: Iterable[Environment]) -> Environment | None:
    """The class of evidence that was made in several environments."""
    order = list(Environment)
    return max(environments, key=order.index, default=None)


def is_ready(node: Json) -> bool:
    conditions: list[Json] = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def takes_pods(node: Json) -> bool:
    """Returns true for a node that takes pods which tolerate only the taint of simulated nodes."""
    keeping = (each for each in node["spec"].get("taints") or () if each["effect"] != "PreferNoSchedule")
    return _is_usable(node) and all(each["key"] in _SIMULATED for each in keeping)


def is_refused(pod: Json) -> bool:
    """Returns true if the scheduler found no node for the pod."""
    conditions: list[Json] = pod.get("status", {}).get("conditions", [])
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each.get("reason") == "Unschedulable"
        for each in conditions
    )


def tolerations(taints: Iterable[Json]) -> list[dict[str, str]]:
    return [{"key": each["key"], "operator": "Exists", "effect": each["effect"]} for each in taints]


def _supply(node: Json, used: Mapping[str, int], resource: str, *, hardware: bool) -> NodeSupply:
    name = node["metadata"]["name"]
    allocatable = _whole(node.get("status", {}).get("allocatable", {}).get(resource, "0"))
    return NodeSupply(
        name,
        node["metadata"].get("labels", {}).get("kubernetes.io/hostname", name),
        allocatable,
        allocatable - used.get(name, 0),
        tuple(node["spec"].get("taints") or ()),
        environment_of(node, hardware=hardware),
    )


def _is_usable(node: Json) -> bool:
    return is_ready(node) and not node["spec"].get("unschedulable")


def _whole(text: object) -> int:
    word = str(text)
    return int(word) if word.isdecimal() and len(word) < 10 else 0
