"""Whose turn it is: within a band, the user who has the least of the cluster goes first."""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from neorion.iris.decide.placement import PendingJob
from neorion.iris.decide.worker_table import WHOLE

Place = Callable[[PendingJob, int], int | None]


def place_in_fair_order(jobs: Iterable[PendingJob], shares: dict[str, int], place: Place) -> None:
    """Lets users take turns, each with their jobs in the given order, until nothing more finds a place.

    `shares` is how much of the cluster each user has; it grows as tasks are placed, so that users with equal demand end at
    most one task apart. `place(job, most)` places up to so many tasks and says how many; 0 means that the job is stuck, and
    None that nobody will find a place any more.
    """
    lines: dict[str, list[PendingJob]] = {}
    for waiting in jobs:
        lines.setdefault(waiting.job.user, []).append(waiting)
    for line in lines.values():
        line.reverse()
    heap = [(shares.get(user, 0), user) for user in lines]
    heapify(heap)
    while heap:
        share, user = heappop(heap)
        line = lines[user]
        # As many as bring the user level with the next one: alone, a user takes everything in one step.
        level = heap[0][0] if heap else share + WHOLE * WHOLE
        while line and share <= level:
            waiting = line[-1]
            cost = waiting.kind.cost
            placed = place(waiting, 1 + (level - share) // cost)
            if placed is None:
                shares[user] = share
                return
            share += placed * cost
            if not placed or not waiting.left:
                line.pop()
        shares[user] = share
        if line:
            heappush(heap, (share, user))
