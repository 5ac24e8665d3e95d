"""Fair share: within a band, the user with the smallest share of the cluster is next."""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from neorion.iris.decide.placement import PendingJob
from neorion.iris.decide.worker_table import WHOLE

Assign = Callable[[PendingJob, int], int | None]


def assign_in_fair_order(jobs: Iterable[PendingJob], shares: dict[str, int], assign: Assign) -> None:
    """Assigns tasks of users in turn, each user's jobs in the given order, until no more fit.

    `shares` is each user's share of the cluster. It grows with each assigned task, so that users with equal demand
    differ by at most one task. `assign(job, most)` assigns up to `most` tasks and returns how many. 0 means that the
    job is stuck, and None that no job can be assigned any more.
    """
    queues: dict[str, list[PendingJob]] = {}
    for waiting in jobs:
        queues.setdefault(waiting.job.user, []).append(waiting)
    for queue in queues.values():
        queue.reverse()
    heap = [(shares.get(user, 0), user) for user in queues]
    heapify(heap)
    while heap:
        share, user = heappop(heap)
        queue = queues[user]
        # Enough to reach the next user's share; a single user takes everything in one step.
        level = heap[0][0] if heap else share + WHOLE * WHOLE
        while queue and share <= level:
            waiting = queue[-1]
            cost = waiting.kind.cost
            placed = assign(waiting, 1 + (level - share) // cost)
            if placed is None:
                shares[user] = share
                return
            share += placed * cost
            if not placed or not waiting.left:
                queue.pop()
        shares[user] = share
        if queue:
            heappush(heap, (share, user))
