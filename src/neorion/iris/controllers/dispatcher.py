"""Dispatcher: streams to workers which attempts to start and to stop."""

import asyncio
from collections.abc import AsyncIterator, Callable

from neorion.iris.controllers.blob_store import BlobStore
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.task_env import variables_of
from neorion.iris.model import AttemptId, AttemptState, Digest, WorkerId, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.record import Attempt
from neorion.iris.model.spec import FunctionCall

# Starts per message; the rest follow in the next message.
BATCH_MAX = 256


class _WorkerQueue:
    """Orders that were not sent to a worker yet."""

    def __init__(self) -> None:
        self.start: dict[AttemptId, None] = {}
        self.stop: dict[AttemptId, None] = {}
        self.pending = asyncio.Event()
        self.closed = False


class Dispatcher:
    """Queue per connected worker. A worker that connects gets its current orders first, then each change.

    A repeated order is harmless, because a worker starts an attempt once. The caller of `start` or `stop` has waited
    until the change is durable.
    """

    def __init__(
        self, context: ControllerContext, blobs: BlobStore, report_key: Callable[[AttemptId], str]
    ) -> None:
        """`report_key` makes the key that authenticates a worker's reports about an attempt."""
        self._report_key = report_key
        self._journal = context.journal
        self._cluster = context.cluster
        self._blobs = blobs
        self._queues: dict[WorkerId, _WorkerQueue] = {}

    def start(self, attempt: Attempt) -> None:
        if (queue := self._queues.get(attempt.worker)) is not None:
            queue.start[attempt.id] = None
            queue.pending.set()

    def stop(self, attempt: Attempt) -> None:
        if (queue := self._queues.get(attempt.worker)) is not None:
            queue.start.pop(attempt.id, None)
            queue.stop[attempt.id] = None
            queue.pending.set()

    def close_stream(self, worker: WorkerId) -> None:
        """Ends the worker's stream. A worker that is alive joins again."""
        if (queue := self._queues.pop(worker, None)) is not None:
            queue.closed = True
            queue.pending.set()

    async def orders(self, worker: WorkerId) -> AsyncIterator[pb.OrderBatch]:
        self.close_stream(worker)
        queue = self._queues[worker] = _WorkerQueue()
        for view in self._cluster.attempts_on_worker[worker].values():
            attempt = self._cluster.attempts[view.attempt]
            if attempt.state is AttemptState.ASSIGNED:
                queue.start[attempt.id] = None
            elif attempt.state is AttemptState.STOPPING:
                queue.stop[attempt.id] = None
        try:
            # The state in memory was read, which is ahead of the store.
            await self._journal.wait_durable()
            while not queue.closed:
                if queue.start or queue.stop:
                    yield await self._batch(queue)
                else:
                    queue.pending.clear()
                    await queue.pending.wait()
        finally:
            if self._queues.get(worker) is queue:
                del self._queues[worker]

    async def _batch(self, queue: _WorkerQueue) -> pb.OrderBatch:
        attempts = [self._cluster.attempts.get(attempt) for attempt in list(queue.start)[:BATCH_MAX]]
        stops = list(queue.stop)
        for attempt in list(queue.start)[:BATCH_MAX]:
            del queue.start[attempt]
        queue.stop.clear()
        starts = [
            await self._start(one)
            for one in attempts
            if one is not None and one.state is AttemptState.ASSIGNED
        ]
        return pb.OrderBatch(start=starts, stop=list[str](stops))

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
            # A warm process keeps the GPUs it has opened, so only attempts with the same GPUs share it.
            pool="/".join((job.id, *map(str, attempt.gpus))) if spec.warm else "",
            run_limit_ms=spec.limits.run.ns // 1_000_000 if spec.limits.run else 0,
            blobs=[pb.Blob(digest=digest, body=body) for digest, body in small if body is not None],
            report_key=self._report_key(attempt.id),
        )
