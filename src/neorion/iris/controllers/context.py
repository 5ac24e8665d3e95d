"""What the appliers share: the book, the journal, time and chance, and the bells that others listen to."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from neorion.iris.controllers.metrics import ControllerMetrics
from neorion.iris.model import JobId
from neorion.iris.state import ClusterState, Journal
from neorion.keel.clock import Clock, Ids, Rng, SteadyClock
from neorion.keel.store import Store


class JobSignals:
    """Tells those who wait for something of a job that it has come. Rung only when that is durable."""

    def __init__(self) -> None:
        self._listening: dict[JobId, asyncio.Event] = {}

    def listen(self, job: JobId) -> asyncio.Event:
        return self._listening.setdefault(job, asyncio.Event())

    def ring(self, job: JobId) -> None:
        if (event := self._listening.pop(job, None)) is not None:
            event.set()


@dataclass(slots=True)
class ControllerContext:
    """One controller's shared things. `wake` turns the scheduler's loop; it is set when the loop is made."""

    cluster: ClusterState
    journal: Journal
    clock: Clock
    ids: Ids
    rng: Rng
    # For its end, and for its first attempts.
    job_ended: JobSignals = field(default_factory=JobSignals)
    first_attempt_started: JobSignals = field(default_factory=JobSignals)
    metrics: ControllerMetrics = field(default_factory=ControllerMetrics)
    wake: Callable[[], None] = lambda: None

    @classmethod
    def for_store(
        cls, store: Store, clock: Clock, ids: Ids, rng: Rng, metrics: ControllerMetrics | None = None
    ) -> Self:
        metrics = metrics or ControllerMetrics()
        journal = Journal(store, clock, rng)
        journal.committed = metrics.committed
        # Waits are measured by times in records: somebody who sets the machine's clock must not end them.
        return cls(ClusterState(journal), journal, SteadyClock(clock), ids, rng, metrics=metrics)
