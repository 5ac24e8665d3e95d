"""Orders on their way to workers: what each is to start and to stop."""

import asyncio
from collections.abc import AsyncIterator, Callable

from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.task_env import variables_of
from neorion.iris.model import AttemptId, AttemptState, Digest, WorkerId, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.record import Attempt
from neorion.iris.model.spec import FunctionCall

# A worker takes in this many starts at once; the rest follow in the next message.
BATCH_MAX = 256


class _WorkerQueue:
    """What one worker has not been told yet."""

    def __init__(self) -> None:
        self.start: dict[AttemptId, None] = {}
        self.stop: dict[AttemptId, None] = {}
        self.news = asyncio.Event()
        self.closed = False


class Dispatcher:
    """One line per connected worker. A worker that connects is told everything it should know, then each change.

    Told twice is harmless: a worker starts an attempt once. Nothing is told before it is durable: whoever calls `start`
    or `stop` has waited for that.
    """

    def __init__(
        self, context: ControllerContext, blobs: BlobStore, report_key: Callable[[AttemptId], str]
    ) -> None:
        """`report_key` makes the key by which a worker proves its reports about an attempt."""
        self._report_key = report_key
        self._store = context.store
        self._journal = context.journal
        self._cluster = context.cluster
        self._blobs = blobs
        self._lines: dict[WorkerId, _WorkerQueue] = {}

    def start(self, attempt: Attempt) -> None:
        if (line := self._lines.get(attempt.worker)) is not None:
            line.start[attempt.id] = None
            line.news.set()

    def stop(self, attempt: Attempt) -> None:
        if (line := self._lines.get(attempt.worker)) is not None:
            line.start.pop(attempt.id, None)
            line.stop[attempt.id] = None
            line.news.set()

    def close_stream(self, worker: WorkerId) -> None:
        """The worker's stream ends; if it lives, it joins again."""
        if (line := self._lines.pop(worker, None)) is not None:
            line.closed = True
            line.news.set()

    async def orders(self, worker: WorkerId) -> AsyncIterator[pb.OrderBatch]:
        self.close_stream(worker)
        line = self._lines[worker] = _WorkerQueue()
        for view in self._cluster.attempts_on_worker[worker].values():
            attempt = self._cluster.attempts[view.attempt]
            if attempt.state is AttemptState.ASSIGNED:
                line.start[attempt.id] = None
            elif attempt.state is AttemptState.STOPPING:
                line.stop[attempt.id] = None
        try:
            # The book is ahead of the store, and this read the book.
            await self._journal.wait_durable()
            while not line.closed:
                if line.start or line.stop:
                    batch = await self._batch(line)
                    # What was durable may be a successor's to order by now.
                    self._store.check_lease()
                    yield batch
                else:
                    line.news.clear()
                    await line.news.wait()
        finally:
            if self._lines.get(worker) is line:
                del self._lines[worker]

    async def _batch(self, line: _WorkerQueue) -> pb.OrderBatch:
        wanted = [self._cluster.attempts.get(attempt) for attempt in list(line.start)[:BATCH_MAX]]
        stops = list(line.stop)
        for attempt in list(line.start)[:BATCH_MAX]:
            del line.start[attempt]
        line.stop.clear()
        starts = [
            await self._start(one) for one in wanted if one is not None and one.state is AttemptState.ASSIGNED
        ]
        return pb.OrderBatch(start=starts, stop=list[str](stops), epoch=self._store.epoch)

    async def _start(self, attempt: Attempt) -> pb.Start:
        job = self._cluster.jobs[attempt.job]
        spec = job.spec
        chosen = spec.inputs[attempt.index] if spec.inputs else Digest("")
        needed = [spec.entry.function] if isinstance(spec.entry, FunctionCall) else []
        if chosen:
            needed.append(chosen)
        small = [(digest, self._blobs.cached(digest)) for digest in needed]
        return pb.Start(
            attempt=attempt.id,
            entry=wire.entry_message(spec.entry),
            input=chosen,
            environment=wire.environment_message(spec.environment),
            variables=variables_of(self._cluster, attempt),
            resources=wire.resources_message(spec.resources),
            # A process that has opened its GPUs keeps them: it is shared only by those who have the same.
            pool="/".join((job.id, *map(str, attempt.gpus))) if spec.warm else "",
            run_limit_ms=spec.limits.run.ns // 1_000_000 if spec.limits.run else 0,
            blobs=[pb.Blob(digest=digest, body=body) for digest, body in small if body is not None],
            report_key=self._report_key(attempt.id),
        )
