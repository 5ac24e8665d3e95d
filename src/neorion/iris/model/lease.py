"""How long a worker may be out of touch, and what follows from that."""

from dataclasses import dataclass
from typing import Self

from neorion.keel.base import Duration

# A worker renews at least this often, so that one in trouble is soon given no new work.
_RENEW_MOST = Duration.of(seconds=5)
# Clocks may run at different rates, by half as much again: the controller waits longer than the worker by more than that.
_MARGIN = 4.6 / 3


@dataclass(frozen=True, slots=True)
class WorkerLeaseTiming:
    """A worker that could not renew for `lasts` ends its tasks; the controller tries them again after `lost_after`.

    One that was not heard of for `silent_after` is given nothing new until it is.
    """

    renew_every: Duration
    lasts: Duration
    silent_after: Duration
    lost_after: Duration

    @classmethod
    def within(cls, timeout: Duration) -> Self:
        """The lease under which a worker that falls silent has lost its tasks after `timeout`."""
        renew_every = min(timeout * (1 / 4.6), _RENEW_MOST)
        return cls(renew_every, timeout * (1 / _MARGIN), renew_every * 2.5, timeout)
