"""User quotas: limits, usage and what is left."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from neorion.iris.model import PendingCode, PendingReason, Quota, Resources, RunningView, UserQuotas

# In the order of `Quota`. The reason about tasks has the lowest precedence, the one about GPUs the highest.
_CODES = (PendingCode.USER_CAP, PendingCode.USER_CPU, PendingCode.USER_MEMORY, PendingCode.USER_GPUS)
CAPPED = frozenset(_CODES)


class QuotaTracker:
    """Remaining quota of each user during a pass. It only shrinks."""

    def __init__(self, caps: UserQuotas, running: Iterable[RunningView]) -> None:
        self._caps = caps
        self.any = caps != UserQuotas()
        self._used: dict[str, list[int]] = {}
        if self.any:
            for run in running:
                self.take(run.user, run.resources, 1)

    def left(self, user: str, asks: Resources, tasks: int) -> int:
        """Number of the tasks that the quota still allows."""
        if not self.any:
            return tasks
        used = self._used.get(user, (0, 0, 0, 0))
        for limit, have, need in zip(_limits(self._caps.of(user)), used, _needs(asks), strict=True):
            if limit and need:
                tasks = min(tasks, max(0, limit - have) // need)
        return tasks

    def take(self, user: str, asks: Resources, tasks: int) -> None:
        if self.any:
            used = self._used.setdefault(user, [0, 0, 0, 0])
            for dimension, need in enumerate(_needs(asks)):
                used[dimension] += need * tasks

    def reason(self, user: str, asks: Resources, tasks: int) -> PendingReason | None:
        """Quota that is exceeded by this many tasks at once, or None."""
        used = self._used.get(user, (0, 0, 0, 0))
        return _over(self._caps.of(user), used, user, asks.times(tasks), tasks) if self.any else None


def over_quota(cap: Quota, user: str, asks: Resources, tasks: int) -> PendingReason | None:
    """Quota that this many tasks at once exceed even without other usage, or None."""
    reason = _over(cap, (0, 0, 0, 0), user, asks.times(tasks), tasks)
    return None if reason is None else replace(reason, never=True)


def _over(cap: Quota, used: Sequence[int], user: str, asks: Resources, tasks: int) -> PendingReason | None:
    rows = zip(_CODES, _limits(cap), used, (tasks, *_needs(asks)[1:]), strict=True)
    for code, limit, have, need in reversed(list(rows)):
        if limit and have + need > limit:
            return PendingReason(code, limit, have, user)
    return None


def _limits(cap: Quota) -> tuple[int, int, int, int]:
    return (cap.tasks, cap.cpu_milli, cap.memory, cap.gpus)


def _needs(asks: Resources) -> tuple[int, int, int, int]:
    return (1, asks.cpu_milli, asks.memory, asks.gpus)
