"""Lease of a worker: how long its tasks may run without contact to the controller."""

from dataclasses import dataclass
from typing import Self

from neorion.keel.base import Duration

# Longest renewal period, so that a worker without contact soon gets no new work.
_RENEW_MOST = Duration.of(seconds=5)
# Factor between the worker's and the controller's timeout. It allows for clocks whose rates differ by half.
_MARGIN = 4.6 / 3


@dataclass(frozen=True, slots=True)
class WorkerLeaseTiming:
    """Timing of a lease. A worker that could not renew for `lasts` ends its tasks.

    The controller retries them after `lost_after`. A worker without contact for `silent_after` gets no new work.
    """

    renew_every: Duration
    lasts: Duration
    silent_after: Duration
    lost_after: Duration

    @classmethod
    def within(cls, timeout: Duration) -> Self:
        """Timing with which the tasks of a worker that loses contact are retried after `timeout`."""
        renew_every = min(timeout * (1 / 4.6), _RENEW_MOST)
        return cls(renew_every, timeout * (1 / _MARGIN), renew_every * 2.5, timeout)
