"""The worker: takes orders from the controller, hands them to the runtime, and reports what became of them."""

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio

from neorion.iris.model import AttemptId, Digest, Resources, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import JobServiceClient, WorkerServiceClient
from neorion.iris.model.spec import Call
from neorion.iris.ports import End, EndKind, Order, Phase, Runtime, Seen
from neorion.iris.worker.cache import BlobCache
from neorion.iris.worker.logs import LogShipper
from neorion.keel.base import Duration, Error, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.rpc import Channel
from neorion.keel.run import Backoff, only_error
from neorion.keel.telemetry import logger

log = logger(__name__)

# Results up to this size ride along with the report of the attempt's end.
INLINE_BYTES_MAX = 1024 * 1024
BLOB_PART_BYTES = 4 * 1024 * 1024
_STOP_GRACE = Duration.of(seconds=10)
_RECONNECT = Backoff(first=Duration.of(ms=50), most=Duration.of(seconds=2), attempts=1_000_000_000)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is. `worker` is what the controller called it in an earlier life, or ""."""

    slice: str
    host: str
    total: Resources
    attributes: dict[str, str]
    worker: str = ""


class Worker:
    """One worker's life, over as many connections as it takes.

    The lease runs from the moment a report is *sent*: whatever the network does to the answer, the controller's clock of
    this worker started later than ours.
    """

    def __init__(self, channel: Channel, runtime: Runtime, folder: Path, clock: Clock, rng: Rng) -> None:
        self._calls = channel.client(WorkerServiceClient)
        self._jobs = channel.client(JobServiceClient)
        self._runtime = runtime
        self._clock = clock
        self._rng = rng
        self._cache = BlobCache(folder / "blobs", self._fetch)
        self._logs = LogShipper(runtime, self._calls, clock)
        self._news: dict[AttemptId, Seen] = {}
        self._changed = asyncio.Event()
        self.id = ""

    async def run(self, identity: Identity) -> None:
        self.id = identity.worker
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            failures = 0
            while True:
                try:
                    await self._session(identity)
                except* Retry as errors:
                    failures += 1
                    wait = _RECONNECT.wait(failures, self._rng)
                    log.warning(
                        "lost touch with the controller", why=str(only_error(errors)), again_in=str(wait)
                    )
                    await self._clock.sleep(wait)
                else:
                    failures = 0

    async def _watch(self) -> None:
        async for changes in self._runtime.changes():
            self._news.update((seen.attempt, seen) for seen in changes)
            self._changed.set()

    async def _session(self, identity: Identity) -> None:
        joined = await self._calls.join(
            pb.JoinRequest(
                slice=identity.slice,
                host=identity.host,
                total=wire.resources_message(identity.total),
                attributes=identity.attributes,
                worker=self.id,
            )
        )
        self.id = joined.worker
        log.info("joined", worker=self.id)
        # All that runs here, so that the controller finds its attempts again or tells us to end them.
        self._news.update((seen.attempt, seen) for seen in await self._runtime.seen())
        self._changed.set()
        async with anyio.create_task_group() as group:
            group.start_soon(self._obey)
            group.start_soon(self._logs.run, self.id)
            await self._report(joined)

    async def _obey(self) -> None:
        async for batch in self._calls.orders(pb.OrdersRequest(worker=self.id)):
            for start in batch.start:
                await self._start(start)
            for attempt in batch.stop:
                await self._runtime.stop(AttemptId(attempt), _STOP_GRACE)
        raise Retry("iris.orders_ended", "The controller closed the stream of orders.")

    async def _report(self, joined: pb.JoinResponse) -> None:
        while True:
            with anyio.move_on_after(joined.renew_every_ms / 1000):
                await self._changed.wait()
            self._changed.clear()
            news, self._news = self._news, {}
            sent = self._clock.monotonic()
            try:
                seen = [await self._message(one) for one in news.values()]
                answer = await self._calls.report(pb.ReportRequest(worker=self.id, seen=seen))
            except BaseException:
                self._news = {**news, **self._news}
                raise
            left = joined.lease_ms / 1000 - (self._clock.monotonic() - sent)
            await self._runtime.renew(Duration.of(seconds=max(0.0, left)))
            await self._settle(news.values(), answer)

    async def _settle(self, told: Iterable[Seen], answer: pb.ReportResponse) -> None:
        """What the controller has recorded is forgotten; what it does not know is ended first."""
        unknown = set(answer.forget)
        for seen in told:
            if seen.phase is Phase.ENDED:
                self._logs.forget(seen.attempt)
                await self._runtime.forget(seen.attempt)
            elif seen.attempt in unknown:
                await self._runtime.stop(seen.attempt, Duration(0))

    async def _start(self, start: pb.Start) -> None:
        attempt = AttemptId(start.attempt)
        try:
            await self._runtime.start(await self._order(attempt, start))
        except Error as error:
            if isinstance(error, Retry):
                raise
            # It can never start here: that is an end like any other.
            self._news[attempt] = Seen(attempt, Phase.ENDED, End(EndKind.NOT_STARTED, message=error.sentence))
            self._changed.set()

    async def _order(self, attempt: AttemptId, start: pb.Start) -> Order:
        self._cache.keep((Digest(blob.digest), blob.body) for blob in start.blobs)
        entry = wire.entry(start.entry)
        environment = wire.environment(start.environment)
        return Order(
            attempt=attempt,
            entry=entry,
            environment=environment,
            variables=tuple(sorted(start.variables.items())),
            resources=wire.resources(start.resources),
            bundle=await self._cache.path(environment.bundle) if environment.bundle else None,
            function=await self._cache.path(entry.function) if isinstance(entry, Call) else None,
            input=await self._cache.path(wire.digest(start.input)) if start.input else None,
            pool=start.pool,
            run_limit=Duration(start.run_limit_ms * 1_000_000) if start.run_limit_ms else None,
        )

    async def _message(self, seen: Seen) -> pb.Seen:
        message = pb.Seen(attempt=seen.attempt, phase=seen.phase)
        if seen.end is not None:
            message.kind, message.code, message.message = seen.end.kind, seen.end.code, seen.end.message
            message.log = await self._logs.rest(self.id, seen.attempt)
            if seen.end.result is not None:
                body = Path(seen.end.result).read_bytes()
                message.result = pb.Blob(digest=hashlib.sha256(body).hexdigest(), body=body)
                message.result_bytes = len(body)
                if len(body) > INLINE_BYTES_MAX:
                    await self._put(message.result)
                    message.result.body = b""
        return message

    async def _put(self, blob: pb.Blob) -> None:
        for offset in range(0, len(blob.body), BLOB_PART_BYTES):
            part = blob.body[offset : offset + BLOB_PART_BYTES]
            last = offset + len(part) == len(blob.body)
            await self._jobs.put_blob(
                pb.PutBlobRequest(digest=blob.digest, offset=offset, body=part, last=last)
            )

    async def _fetch(self, digest: Digest) -> bytes:
        parts: list[bytes] = []
        have, size = 0, 1
        while have < size:
            part = await self._jobs.get_blob(pb.GetBlobRequest(digest=digest, offset=have))
            parts.append(part.body)
            have, size = have + len(part.body), part.size
        return b"".join(parts)
