"""Ranks of a distributed server, read together: the server is as far as its slowest rank."""

from neorion.devservers.decide.decision import Observed
from neorion.devservers.decide.progress import ConditionStep, ready, steps
from neorion.devservers.model import DevServerStatus, Rank


def whole_steps(seen: Observed) -> tuple[ConditionStep, ...]:
    """Steps from the volumes to a server that can be used, of all its machines."""
    if seen.distributed is None:
        return steps(seen.home, seen.pod)
    taken = [steps(home, pod) for home, pod in zip(seen.homes, seen.pods_by_rank, strict=True)]
    return tuple(_together(of_kind) for of_kind in zip(*taken, strict=True))


def rank_statuses(seen: Observed) -> tuple[Rank, ...]:
    if seen.distributed is None:
        return ()
    return tuple(
        Rank(
            name=name,
            node=pod.spec.node_name or None if pod else None,
            ready=pod is not None and ready(pod),
        )
        for name, pod in zip(seen.rank_names, seen.pods_by_rank, strict=True)
    )


def lost_ranks(before: DevServerStatus, now: DevServerStatus) -> tuple[int, ...]:
    """Ranks that were ready and are not any longer, while at least one other still is."""
    if len(before.ranks) != len(now.ranks) or not any(one.ready for one in now.ranks):
        return ()
    pairs = enumerate(zip(before.ranks, now.ranks, strict=True))
    return tuple(rank for rank, (old, new) in pairs if old.ready and not new.ready)


def _together(of_kind: tuple[ConditionStep, ...]) -> ConditionStep:
    """One step of all ranks: the first that is blocked, else the first that is not done."""
    behind = [(rank, one) for rank, one in enumerate(of_kind) if one.done is not True]
    if not behind:
        return of_kind[0]
    rank, worst = min(behind, key=lambda item: (not item[1].blocked, item[1].done is None))
    if not worst.blocked:
        return worst
    return ConditionStep(worst.type, worst.done, worst.reason, f"Rank {rank}: {worst.message}")
