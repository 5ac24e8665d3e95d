"""Work that starts whole or not at all: how many nodes it needs."""

from collections.abc import Iterable, Sequence


def largest_gang(gangs: Iterable[Sequence[int]], gpus_per_node: int) -> int:
    """In nodes, of gangs given as the GPUs of their members; 0 where there is none, or where nobody can say what fits on a node."""
    if gpus_per_node <= 0:
        return 0
    return max((nodes_for(sizes, gpus_per_node) for sizes in gangs), default=0)


def nodes_for(sizes: Sequence[int], gpus_per_node: int) -> int:
    """How many nodes these members fill, the large ones placed first."""
    free: list[int] = []
    for size in sorted(sizes, reverse=True):
        place = next((index for index, left in enumerate(free) if left >= size), None)
        if place is None:
            free.append(gpus_per_node - size)
        else:
            free[place] -= size
    return len(free)
