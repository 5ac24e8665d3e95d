"""GPU packing: counts the nodes that work fills. A pod's GPUs are on one node, and a gang fits whole or not at all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neorion.navarch.model import Gang


@dataclass(frozen=True, slots=True)
class PackingResult:
    """`gpus` are in use or waited for on `nodes`. `homeless` are gangs for which there is no room beside the rest."""

    nodes: int = 0
    gpus: int = 0
    homeless: tuple[Gang, ...] = ()


def pack(busy: Sequence[int], waiting: Iterable[Gang], gpus_per_node: int, most: int) -> PackingResult:
    """Packs waiting work beside running work, on at most `most` nodes.

    Gangs come first, so that small work does not starve them. A gang that does not fit whole is left out, because nodes for a
    part of it would be idle. Work of a single member always counts.
    """
    free = Counter(max(0, gpus_per_node - used) for used in busy)
    nodes, gpus = len(busy), sum(busy)
    homeless: list[Gang] = []
    for gang in sorted(waiting, key=lambda gang: (len(gang) == 1, -sum(gang))):
        # Members that are larger than a node do not fit on any.
        sizes = [size for size in gang if size <= gpus_per_node]
        placed = free.copy() if len(gang) > 1 else free
        new = _fit(sizes, placed, gpus_per_node)
        if len(gang) > 1 and (len(sizes) < len(gang) or (new and nodes + new > most)):
            homeless.append(gang)
            continue
        free, nodes, gpus = placed, nodes + new, gpus + sum(sizes)
    return PackingResult(nodes, gpus, tuple(homeless))


def filled(sizes: Sequence[int], gpus_per_node: int) -> tuple[int, ...]:
    """GPUs in use on each node, for work on unknown nodes. Assumes the smallest number of nodes."""
    free: Counter[int] = Counter()
    _fit(sizes, free, gpus_per_node)
    return tuple(gpus_per_node - left for left in sorted(free.elements()))


def _fit(sizes: Sequence[int], free: Counter[int], gpus_per_node: int) -> int:
    """Fits sizes into the fullest nodes that have room, the large sizes first. Returns the number of additional nodes."""
    new = 0
    for size in sorted(filter(None, sizes), reverse=True):
        room = next((left for left in range(size, gpus_per_node + 1) if free[left]), None)
        if room is None:
            new, room = new + 1, gpus_per_node
        else:
            free[room] -= 1
        free[room - size] += 1
    return new
