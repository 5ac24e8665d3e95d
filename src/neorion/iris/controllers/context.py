"""Shared parts of the controllers: the cluster's state, the journal, the store, clock, random numbers and signals."""

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
    """Events per job with waiting callers. An event is set only after the change is durable."""

    def __init__(self) -> None:
        self._events: dict[JobId, asyncio.Event] = {}

    def listen(self, job: JobId) -> asyncio.Event:
        return self._events.setdefault(job, asyncio.Event())

    def notify(self, job: JobId) -> None:
        if (event := self._events.pop(job, None)) is not None:
            event.set()


@dataclass(slots=True)
class ControllerContext:
    """Shared parts of one controller. `wake` requests a tick of the scheduler."""

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
        """Builds the context. Without `metrics` nothing is measured."""
        journal = Journal(store, clock, rng)
        cluster = ClusterState(journal)
        metrics = metrics or ControllerMetrics()
        # Waits are measured from times in records, and a change of the machine's clock must not end them.
        clock = SteadyClock(clock)
        return cls(store, journal, cluster, clock, ids, rng, metrics, PendingReasons(cluster))
