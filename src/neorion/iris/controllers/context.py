"""What the controllers share: the cluster's state, the journal, the store, time and chance, and signals."""

import asyncio
from dataclasses import dataclass, field
from typing import Self

from neorion.iris.controllers.metrics import ControllerMetrics
from neorion.iris.controllers.pending_reasons import PendingReasons
from neorion.iris.model import JobId
from neorion.iris.state import ClusterState, Journal
from neorion.keel.base import Callbacks
from neorion.keel.clock import Clock, Ids, Rng, SteadyClock
from neorion.keel.store import Store


class JobSignals:
    """One event for each job that somebody waits for. It is set only after the change is durable."""

    def __init__(self) -> None:
        self._listening: dict[JobId, asyncio.Event] = {}

    def listen(self, job: JobId) -> asyncio.Event:
        return self._listening.setdefault(job, asyncio.Event())

    def ring(self, job: JobId) -> None:
        if (event := self._listening.pop(job, None)) is not None:
            event.set()


@dataclass(slots=True)
class ControllerContext:
    """One controller's shared parts. `wake` asks for a tick of the scheduler."""

    store: Store
    journal: Journal
    cluster: ClusterState
    clock: Clock
    ids: Ids
    rng: Rng
    metrics: ControllerMetrics
    reasons: PendingReasons
    job_ended: JobSignals = field(default_factory=JobSignals)
    first_attempt_started: JobSignals = field(default_factory=JobSignals)
    wake: Callbacks[[]] = field(default_factory=Callbacks[[]])

    @classmethod
    def for_store(
        cls, store: Store, clock: Clock, ids: Ids, rng: Rng, metrics: ControllerMetrics | None = None
    ) -> Self:
        """`metrics` of None measures nothing."""
        journal = Journal(store, clock, rng)
        cluster = ClusterState(journal)
        metrics = metrics or ControllerMetrics()
        # Waits are measured by times in records: setting the machine's clock must not end them.
        clock = SteadyClock(clock)
        return cls(store, journal, cluster, clock, ids, rng, metrics, PendingReasons(cluster))
