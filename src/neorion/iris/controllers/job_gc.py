"""Garbage collection of ended jobs, with their logs and blobs."""

from collections.abc import Iterator

from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.log_store import LogStore
from neorion.iris.model import Digest
from neorion.iris.model.record import Job
from neorion.iris.model.spec import FunctionCall
from neorion.iris.state import ClusterState, attempts_of_job
from neorion.keel.base import Duration
from neorion.keel.telemetry import logger

log = logger(__name__)

# Every job is in memory: this many small jobs take some tens of megabytes.
KEEP_JOBS = 10_000


class JobGarbageCollector:
    """Collector that deletes jobs past their retention, and the oldest above the maximum number."""

    def __init__(
        self,
        context: ControllerContext,
        blobs: BlobStore,
        log_store: LogStore,
        keep_for: Duration,
    ) -> None:
        self._context = context
        self._cluster = context.cluster
        self._blobs = blobs
        self._log_store = log_store
        self._keep_for = keep_for
        # Blobs of deleted jobs.
        self._doomed: dict[Digest, None] = {}

    async def tick(self) -> None:
        for job in self._expired():
            await self._delete(job)
        if self._doomed:
            named = {
                digest for job in self._cluster.jobs.values() for digest in digests_of(self._cluster, job)
            }
            doomed = [digest for digest in self._doomed if digest not in named]
            self._doomed = dict.fromkeys(await self._blobs.sweep(doomed))

    def _expired(self) -> list[Job]:
        """Jobs to delete, the oldest first. A job with a stopping attempt is kept until the attempt has ended."""
        ended = [(job.ended, job) for job in self._cluster.jobs.values() if job.ended is not None]
        ended.sort(key=lambda pair: pair[0].ns)
        limit = self._context.clock.now() - self._keep_for
        surplus = len(ended) - KEEP_JOBS
        busy = {attempt.job for attempt in self._cluster.attempts.values()}
        return [
            job
            for number, (when, job) in enumerate(ended)
            if (when < limit or number < surplus) and job.id not in busy
        ]

    async def _delete(self, job: Job) -> None:
        attempts = await attempts_of_job(self._context.store, job.id)
        if job.id not in self._cluster.jobs:
            return
        self._doomed.update(dict.fromkeys(digests_of(self._cluster, job)))
        self._doomed.update((one.ending.result, None) for one in attempts if one.ending.result)
        self._cluster.drop_job(job.id)
        self._log_store.forget(job.id)
        log.info("job forgotten", job=job.id, name=job.spec.name)


def digests_of(cluster: ClusterState, job: Job) -> Iterator[Digest]:
    """Digests of all blobs that a job refers to."""
    spec = job.spec
    if isinstance(spec.entry, FunctionCall):
        yield spec.entry.function
    if spec.environment.bundle:
        yield spec.environment.bundle
    yield from spec.inputs
    for task in cluster.tasks[job.id]:
        if task.ending.result:
            yield task.ending.result
