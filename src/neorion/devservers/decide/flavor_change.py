"""Checks whether a pod of the new flavor could run, before a running server gives up its own.

An obstacle blocks the change with a sentence, and the server goes on unchanged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from neorion.devservers.decide.names import HOME_CLASS
from neorion.devservers.decide.resize import requested
from neorion.devservers.model import DevServerFlavorSpec, DevServerSpec, Toleration
from neorion.devservers.model.kube_types import NodeSelectorRequirement, PersistentVolume
from neorion.keel.base import Quantity
from neorion.keel.kube.core import Node, PersistentVolumeClaim, Pod, ResourceQuota, Taint

# Marks of a node's passing troubles: it will have the room again when they are over.
_PASSING = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
# A quota without a prefix counts requests.
_REQUESTS = "requests."


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts that are read only when a server is about to change: its volume, the nodes, and its namespace's quotas.

    `home_grows` is true if the storage class of its home allows volumes to grow.
    """

    volume: PersistentVolume | None = None
    nodes: tuple[Node, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    home_grows: bool = True


@dataclass(frozen=True, slots=True)
class BlockReason:
    """Why a change has to wait: a word for programs, a sentence for people."""

    reason: str
    sentence: str


@dataclass(frozen=True, slots=True)
class FlavorChange:
    """From the pod there is to the flavor that is asked for. New nodes may come by themselves where `autoscaled`.

    `count` is the number of pods that change so together.
    """

    pod: Pod
    name: str
    flavor: DevServerFlavorSpec
    in_place: bool = False
    autoscaled: bool = False
    count: int = 1


def block_reason(move: FlavorChange, around: ClusterFacts) -> BlockReason | None:
    """First reason why the server could never run on the new flavor. A change in place needs no other node."""
    return _quota(move, around) or (None if move.in_place else _no_suitable_node(move, around))


def home_should_grow(spec: DevServerSpec, home: PersistentVolumeClaim | None) -> bool:
    """Reports whether the spec has a larger home than the existing one. A home without a volume cannot grow."""
    there, wanted = _size(home), spec.persistent_home_size
    if home is None or there is None or there == wanted or home.status.phase != "Bound":
        return False
    return _nano(wanted) > _nano(there)


def with_actual_home_size(
    spec: DevServerSpec, home: PersistentVolumeClaim | None, around: ClusterFacts | None
) -> DevServerSpec:
    """With the home as it can be: one that was kept may be larger than asked for, or of another class, and stays so."""
    there, kind = _size(home), _class(spec, home)
    if kind != spec.home.storage_class:
        spec = replace(spec, home=replace(spec.home, storage_class=kind))
    if there in (None, spec.persistent_home_size) or (
        home_should_grow(spec, home) and not home_cannot_grow(spec, home, around)
    ):
        return spec
    return replace(spec, persistent_home_size=there)


def home_cannot_grow(
    spec: DevServerSpec, home: PersistentVolumeClaim | None, around: ClusterFacts | None
) -> BlockReason | None:
    if around is None or around.home_grows or home is None or not home_should_grow(spec, home):
        return None
    kind = home.spec.storage_class_name or "none"
    return BlockReason(
        "HomeCannotGrow", f'The home stays at {_size(home)}: its storage class "{kind}" lets no volume grow.'
    )


def _class(spec: DevServerSpec, home: PersistentVolumeClaim | None) -> str | None:
    """Which class to name: of a claim that stands, the API server takes no other, nor none where one was named."""
    asked = spec.home.storage_class
    named = asked is not None or (home is not None and HOME_CLASS in home.meta.annotations)
    return (home.spec.storage_class_name if home and named else None) or asked


def _size(home: PersistentVolumeClaim | None) -> str | None:
    return home.spec.resources.requests.get("storage") if home else None


def _quota(move: FlavorChange, around: ClusterFacts) -> BlockReason | None:
    for quota in around.quotas:
        for prefix, name, more in _growth(move):
            key = _counted(quota, prefix, name)
            if key is None:
                continue
            would = _nano(quota.status.used.get(key)) + more * move.count
            if would > _nano(quota.status.hard[key]):
                return BlockReason(
                    "QuotaShort",
                    f'The quota "{quota.meta.name}" allows {quota.status.hard[key]} of {key}, and with the'
                    f' flavor "{move.name}" {Quantity(would)} would be used.',
                )
    return None


def _growth(move: FlavorChange) -> Iterable[tuple[str, str, int]]:
    """By how much each share grows: the old pod gives its own back before the new one takes more."""
    old = move.pod.spec.containers[0].resources
    parts = (
        (_REQUESTS, old.requests, requested(move.flavor)),
        ("limits.", old.limits, move.flavor.resources.limits),
    )
    for prefix, before, after in parts:
        for name, amount in after.items():
            more = _nano(amount) - _nano(before.get(name))
            if more > 0:
                yield prefix, name, more


def _counted(quota: ResourceQuota, prefix: str, name: str) -> str | None:
    """Under which name a quota counts a resource, if it does."""
    names = (prefix + name, name) if prefix == _REQUESTS else (prefix + name,)
    return next((one for one in names if one in quota.status.hard), None)


def _no_suitable_node(move: FlavorChange, around: ClusterFacts) -> BlockReason | None:
    """Reason why no node suits: none matches the flavor, none can mount the home, or none has enough capacity."""
    wanted = move.flavor.node_selector
    home = _node_affinity(around.volume)
    if _mutually_exclusive(wanted, home):
        return _elsewhere(move, home)
    kind = [node for node in around.nodes if _takes(node, move.flavor)]
    if move.autoscaled:
        return None
    if not kind:
        asked = ", ".join(f"{name}={value}" for name, value in wanted.items()) or "its tolerations"
        return BlockReason(
            "NoSuchNode", f'No node is of the kind the flavor "{move.name}" asks for: {asked}.'
        )
    near = [node for node in kind if _reaches(node, home)]
    if not near:
        return _elsewhere(move, home)
    if not any(_holds(node, move.flavor) for node in near):
        return BlockReason(
            "NodesTooSmall", f'No node that the home can go to is large enough for the flavor "{move.name}".'
        )
    return None


def _elsewhere(move: FlavorChange, home: tuple[tuple[NodeSelectorRequirement, ...], ...]) -> BlockReason:
    tied = "; ".join(", ".join(f"{one.key} {' '.join(one.values)}" for one in term) for term in home)
    return BlockReason(
        "HomeElsewhere", f'The home is tied to {tied}, and the flavor "{move.name}" has no node there.'
    )


def _node_affinity(volume: PersistentVolume | None) -> tuple[tuple[NodeSelectorRequirement, ...], ...]:
    """Each is a place that would do; none means anywhere."""
    required = volume.spec.node_affinity.required if volume and volume.spec.node_affinity else None
    return tuple(term.match_expressions for term in required.node_selector_terms) if required else ()


def _mutually_exclusive(
    wanted: Mapping[str, str], home: tuple[tuple[NodeSelectorRequirement, ...], ...]
) -> bool:
    """Reports whether no node could match both, by labels."""
    return bool(home) and all(
        any(one.key in wanted and not _meets(wanted, one) for one in term) for term in home
    )


def _reaches(node: Node, home: tuple[tuple[NodeSelectorRequirement, ...], ...]) -> bool:
    return not home or any(all(_meets(node.meta.labels, one) for one in term) for term in home)


def _meets(labels: Mapping[str, str], one: NodeSelectorRequirement) -> bool:
    match one.operator:
        case "In":
            return labels.get(one.key) in one.values
        case "NotIn":
            return labels.get(one.key) not in one.values
        case "Exists":
            return one.key in labels
        case "DoesNotExist":
            return one.key not in labels
        case _:
            # An unknown operator counts as met. The scheduler decides, and a failed change is undone.
            return True


def _takes(node: Node, flavor: DevServerFlavorSpec) -> bool:
    labelled = flavor.node_selector.items() <= node.meta.labels.items()
    return labelled and all(
        any(_tolerates(one, taint) for one in flavor.tolerations) for taint in _lasting(node.spec.taints)
    )


def _lasting(taints: Iterable[Taint]) -> Iterable[Taint]:
    return (one for one in taints if one.effect in _KEEPS_AWAY and not one.key.startswith(_PASSING))


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in (None, taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in (None, taint.key)
    return toleration.key == taint.key and (toleration.value or "") == taint.value


def _holds(node: Node, flavor: DevServerFlavorSpec) -> bool:
    """Were the node empty."""
    has = node.status.allocatable
    return all(_nano(amount) <= _nano(has.get(name)) for name, amount in requested(flavor).items())


def _nano(amount: int | str | None) -> int:
    return 0 if amount is None else Quantity.parse(amount).nano
