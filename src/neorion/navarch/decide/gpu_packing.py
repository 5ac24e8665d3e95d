"""How many nodes work with GPUs fills: a pod's GPUs are on one node, and what starts together finds room together or not at all."""

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
    """What runs stays where it is; what waits is placed beside it, on at most so many nodes.

    Gangs come first, so that no stream of small work keeps them out. Nodes for a part of a gang would stand idle: one without
    room for all of it is left out. Work of a single member never is, whatever the pool may have.
    """
    free = Counter(max(0, gpus_per_node - used) for used in busy)
    nodes, gpus = len(busy), sum(busy)
    homeless: list[Gang] = []
    for gang in sorted(waiting, key=lambda gang: (len(gang) == 1, -sum(gang))):
        # Nobody has a node for those: more of ours would not help.
        sizes = [size for size in gang if size <= gpus_per_node]
        placed = free.copy() if len(gang) > 1 else free
        new = _place(sizes, placed, gpus_per_node)
        if len(gang) > 1 and (len(sizes) < len(gang) or (new and nodes + new > most)):
            homeless.append(gang)
            continue
        free, nodes, gpus = placed, nodes + new, gpus + sum(sizes)
    return PackingResult(nodes, gpus, tuple(homeless))


def filled(sizes: Sequence[int], gpus_per_node: int) -> tuple[int, ...]:
    """GPUs in use on each node, of work that runs on nobody knows which: as few nodes as it can be on."""
    free: Counter[int] = Counter()
    _place(sizes, free, gpus_per_node)
    return tuple(gpus_per_node - left for left in sorted(free.elements()))


def _place(sizes: Sequence[int], free: Counter[int], gpus_per_node: int) -> int:
    """Into the fullest nodes that have room, the large ones first; how many nodes more that takes."""
    new = 0
    for size in sorted(filter(None, sizes), reverse=True):
        room = next((left for left in range(size, gpus_per_node + 1) if free[left]), None)
        if room is None:
            new, room = new + 1, gpus_per_node
        else:
            free[room] -= 1
        free[room - size] += 1
    return new
