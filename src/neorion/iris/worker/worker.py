"""Worker daemon: receives orders from the controller, passes them to the runtime, and reports the results."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import anyio

from neorion.iris.model import AttemptId, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import JobServiceClient, WorkerServiceClient
from neorion.iris.ports import AttemptExit, AttemptStatus, ExitKind, Phase, Runtime
from neorion.iris.worker import blob_transfer
from neorion.iris.worker.attempt_spec import attempt_spec
from neorion.iris.worker.blob_cache import BlobCache
from neorion.iris.worker.deferred_starts import DISK_FULL_CODES, DeferredStarts
from neorion.iris.worker.history import AttemptHistory
from neorion.iris.worker.identity import Identity, read_text, write_text
from neorion.iris.worker.leader_epoch import LeaderEpoch
from neorion.iris.worker.log_shipper import LogShipper
from neorion.iris.worker.report_keys import ReportKeys
from neorion.iris.worker.usage_monitor import UsageMonitor
from neorion.keel.base import (
    Conflict,
    Denied,
    Duration,
    Error,
    Invalid,
    NoCapacity,
    NotFound,
    Retry,
    Unauthenticated,
)
from neorion.keel.clock import Clock, Rng
from neorion.keel.rpc import Channel
from neorion.keel.run import Backoff, only_error
from neorion.keel.telemetry import logger

log = logger(__name__)

# Longer than a lease. A call without an answer is repeated on a new connection.
CALL_TIMEOUT = Duration.of(seconds=10)
# A message holds at most 4 MiB: this much and one more report.
REPORT_BYTES_MAX = 2 * 1024 * 1024
_RETRY_EVERY = Duration.of(seconds=10)
_STOP_GRACE = Duration.of(seconds=10)
_RECONNECT = Backoff(first=Duration.of(ms=50), most=Duration.of(seconds=2), attempts=1_000_000_000)


class WorkerDaemon:
    """Daemon of one worker, over connections and restarts: its folder contains its identity.

    The lease begins when a report is *sent*, so the worker's lease ends before the controller's, however late the response
    arrives. Heartbeats are independent of other calls, so that neither the upload of a large result nor a slow disk of the
    controller can end the lease.
    """

    def __init__(self, channel: Channel, runtime: Runtime, folder: Path, clock: Clock, rng: Rng) -> None:
        self._channel = channel
        self._calls = channel.client(WorkerServiceClient)
        self._jobs = channel.client(JobServiceClient)
        self._runtime = runtime
        self._clock = clock
        self._rng = rng
        self._name = folder / "worker"
        self._token_file = folder / "worker.badge"
        self._boot = folder / "boot"
        self._leader = LeaderEpoch(folder / "controller.epoch")
        self._cache = BlobCache(folder / "blobs", lambda digest: blob_transfer.fetch(self._jobs, digest))
        # Keys from the controller's orders. A report about an attempt is accepted only with its key.
        self._keys = ReportKeys(folder / "report.keys")
        self._logs = LogShipper(runtime, self._calls, clock, self._keys.get)
        self._usage = UsageMonitor(runtime, clock)
        # Changes from the runtime, then reports that are ready to be sent.
        self._changes: dict[AttemptId, AttemptStatus] = {}
        self._changed = asyncio.Event()
        self._outbox: dict[AttemptId, tuple[AttemptStatus, pb.Seen]] = {}
        self._ready = asyncio.Event()
        self._history = AttemptHistory()
        # Ends whose values the controller has no room for, and orders that this disk has no room for.
        self._deferred_reports: dict[AttemptId, AttemptStatus] = {}
        self._deferred_starts = DeferredStarts(clock)
        self._orders_lock = anyio.Lock()
        self._leased_until = 0.0
        self._last_error = ""
        self.id = ""

    async def run(self, identity: Identity) -> None:
        # After a reboot it joins as another worker, because it may have forgotten the attempts that it had started, and must not
        # get their orders again.
        same = read_text(self._boot) == self._runtime.boot
        self.id = (identity.worker or read_text(self._name)) if same else ""
        with self._keys:
            async with anyio.create_task_group() as group:
                group.start_soon(self._watch)
                failures = 0
                while True:
                    began = self._clock.monotonic()
                    try:
                        await self._session(identity)
                    except* Error as errors:
                        # A long session resets the count of failures.
                        lasted = self._clock.monotonic() - began > _RECONNECT.most.seconds
                        failures = 1 if lasted else failures + 1
                        wait = _RECONNECT.wait(failures, self._rng)
                        self._log_disconnect(str(only_error(errors)))
                        await self._clock.sleep(wait)

    def _log_disconnect(self, why: str) -> None:
        """Logs each reason once until the next session, because the controller may be unreachable for weeks."""
        if why != self._last_error:
            self._last_error = why
            log.warning("lost touch with the controller", why=why)

    async def _watch(self) -> None:
        async for changes in self._runtime.changes():
            self._on_changes(changes)

    def _on_changes(self, changes: Iterable[AttemptStatus]) -> None:
        for seen in changes:
            if seen.phase is Phase.ENDED:
                self._history.record_end(seen)
            self._changes[seen.attempt] = seen
            self._logs.update(seen)
        self._changed.set()

    async def _session(self, identity: Identity) -> None:
        sent = self._clock.monotonic()
        joined = await self._join(
            pb.JoinRequest(
                slice=identity.slice,
                host=identity.host,
                total=wire.resources_message(identity.total),
                attributes=identity.attributes,
                worker=self.id,
            )
        )
        self._leader.follow(joined.epoch)
        if joined.worker == self.id and any(one not in self._keys for one in joined.begun):
            # Without keys it cannot report about its attempts, so it joins as another worker and the controller ends them.
            log.warning("the keys of attempts are gone; joining as a new worker", worker=self.id)
            self.id = ""
            raise Retry("iris.no_report_key", "The keys of this worker's attempts are gone.")
        if joined.worker != self.id:
            await self._adopt_new_identity(joined)
        self._channel.show(joined.token or None)
        log.info("joined", worker=self.id)
        self._last_error = ""
        await self._renew(sent, joined)
        # Report all attempts, so that the controller finds them again or requests their end.
        seen = await self._runtime.seen()
        self._outbox.clear()
        self._deferred_reports.clear()
        self._deferred_starts.clear()
        self._on_changes(seen)
        known = {one.attempt for one in seen}
        gone = AttemptExit(ExitKind.LOST, message="its worker has forgotten it")
        begun = [AttemptId(attempt) for attempt in joined.begun]
        self._keys.keep_only(known.union(begun))
        self._on_changes(
            AttemptStatus(attempt, Phase.ENDED, gone) for attempt in begun if attempt not in known
        )
        async with anyio.create_task_group() as group:
            group.start_soon(self._run_orders)
            group.start_soon(self._logs.run, self.id)
            group.start_soon(self._usage.run)
            group.start_soon(self._prepare)
            group.start_soon(self._report)
            group.start_soon(self._retry_deferred)
            await self._heartbeat(joined)

    async def _join(self, request: pb.JoinRequest) -> pb.JoinResponse:
        """Joins as the same worker if the controller still knows it, otherwise with the join token."""
        token = read_text(self._token_file) if self.id else ""
        if token:
            self._channel.show(token)
            with suppress(Unauthenticated):
                return await self._calls.join(request)
        self._channel.show(None)
        return await self._calls.join(request)

    async def _adopt_new_identity(self, joined: pb.JoinResponse) -> None:
        """Starts as a new worker. Attempts of the old one are stopped, because they may run elsewhere by now."""
        for seen in await self._runtime.seen():
            if seen.phase is not Phase.ENDED:
                await self._runtime.stop(seen.attempt, Duration(0))
        # The name first, so that an old name is never used for this boot.
        write_text(self._token_file, joined.token)
        write_text(self._name, joined.worker)
        write_text(self._boot, self._runtime.boot)
        self._keys.keep_only(())
        self.id = joined.worker

    async def _run_orders(self) -> None:
        async for batch in self._calls.orders(pb.OrdersRequest(worker=self.id)):
            self._leader.check(batch.epoch)
            async with self._orders_lock:
                await self._start_all(batch.start)
                for attempt in batch.stop:
                    await self._stop(AttemptId(attempt))
        raise Retry("iris.orders_ended", "The controller closed the stream of orders.")

    async def _start_all(self, starts: Iterable[pb.Start]) -> None:
        """Starts all at once: the runtime forks fastest in batches, and no start waits for another."""
        async with anyio.create_task_group() as group:
            for start in starts:
                group.start_soon(self._start, start)

    async def _retry_deferred(self) -> None:
        """Retries starts and reports that failed for lack of disk space here or on the controller."""
        while True:
            await self._clock.sleep(_RETRY_EVERY)
            if self._deferred_reports:
                self._on_changes(list(self._deferred_reports.values()))
            if starts := self._deferred_starts.starts():
                async with self._orders_lock:
                    await self._start_all(starts)

    async def _heartbeat(self, joined: pb.JoinResponse) -> None:
        while True:
            await self._clock.sleep(Duration.of(ms=joined.renew_every_ms))
            sent = self._clock.monotonic()
            try:
                request = pb.ReportRequest(worker=self.id, look=self._usage.take_unsent())
                self._leader.check((await self._calls.report(request)).epoch)
            except Retry as error:
                # A busy server has refused this report. The next one may still arrive within the lease.
                if error.code != "rpc.busy" or sent >= self._leased_until:
                    raise
            else:
                await self._renew(sent, joined)

    async def _renew(self, sent: float, joined: pb.JoinResponse) -> None:
        self._leased_until = max(self._leased_until, sent + joined.lease_ms / 1000)
        left = self._leased_until - self._clock.monotonic()
        if left > 0:
            await self._runtime.renew(Duration.of(seconds=left))

    async def _prepare(self) -> None:
        """Prepares reports independently of sending, because a large result takes longer to send than a lease lasts."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._changes:
                attempt = next(iter(self._changes))
                seen = self._changes.pop(attempt)
                if self._history.settled(attempt):
                    # The runtime repeats states after a reconnection; this one was settled.
                    await self._forget(attempt)
                    continue
                try:
                    self._outbox[attempt] = (seen, await self._message(seen))
                except NoCapacity as error:
                    self._defer_report(seen, error)
                self._ready.set()

    async def _report(self) -> None:
        """Sends reports. Only heartbeats renew the lease, so that the runtime is not called for every report."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            while batch := self._batch():
                await self._send(batch)

    async def _send(self, batch: list[tuple[AttemptStatus, pb.Seen]]) -> None:
        messages = [message for _, message in batch]
        try:
            answer = await self._calls.report(pb.ReportRequest(worker=self.id, seen=messages))
        except NoCapacity as error:
            # One of them has a value that does not fit; the others are sent without it.
            for one in batch if len(batch) > 1 else ():
                await self._send([one])
            if len(batch) == 1:
                self._defer_report(batch[0][0], error)
            return
        self._leader.check(answer.epoch)
        await self._acknowledge([seen for seen, _ in batch], answer)

    def _defer_report(self, seen: AttemptStatus, error: NoCapacity) -> None:
        if seen.attempt not in self._deferred_reports:
            log.warning("an end waits for room for its value", attempt=seen.attempt, why=error.sentence)
        self._deferred_reports[seen.attempt] = seen

    def _batch(self) -> list[tuple[AttemptStatus, pb.Seen]]:
        """Takes the next batch. If its report fails, the next session reports everything that the runtime knows."""
        batch: list[tuple[AttemptStatus, pb.Seen]] = []
        size = 0
        while self._outbox and size < REPORT_BYTES_MAX:
            batch.append(self._outbox.pop(next(iter(self._outbox))))
            size += len(batch[-1][1].to_binary())
        return batch

    async def _acknowledge(self, reported: Iterable[AttemptStatus], answer: pb.ReportResponse) -> None:
        """Forgets ends that the controller has recorded, and kills attempts that it does not know."""
        unknown = set(answer.forget)
        over: list[AttemptId] = []
        for seen in reported:
            if seen.phase is Phase.ENDED:
                over.append(seen.attempt)
                self._history.settle(seen.attempt)
                self._deferred_reports.pop(seen.attempt, None)
                self._logs.forget(seen.attempt)
                self._usage.forget(seen.attempt)
                self._cache.release(seen.attempt)
                self._keys.forget(seen.attempt)
            elif seen.attempt in unknown:
                self._deferred_starts.pop(seen.attempt)
                await self._kill(seen.attempt)
        await self._forget(*over)

    async def _forget(self, *attempts: AttemptId) -> None:
        """Forgets attempts, except those being started: the runtime would treat their order as new and run them again."""
        if free := [attempt for attempt in attempts if not self._history.starting(attempt)]:
            await self._runtime.forget(*free)

    async def _kill(self, attempt: AttemptId) -> None:
        with suppress(NotFound):
            await self._runtime.stop(attempt, Duration(0))

    async def _start(self, start: pb.Start) -> None:
        """Starts an attempt unless its end becomes known meanwhile, because fetching its files may take long."""
        attempt = AttemptId(start.attempt)
        if self._history.settled(attempt):
            return
        self._keys.put(attempt, start.report_key)
        with self._history.start(attempt):
            await self._start_once(attempt, start)
        if self._history.settled(attempt):
            await self._forget(attempt)

    async def _start_once(self, attempt: AttemptId, start: pb.Start) -> None:
        since = self._deferred_starts.pop(attempt)
        try:
            order = await attempt_spec(start, self._cache, self._channel)
            if self._history.ended(attempt):
                # Reported again, because an end that the runtime does not know is lost when a session breaks.
                self._on_changes(self._history.unsettled(attempt))
            else:
                await self._runtime.start(order)
        except Retry as error:
            if error.code not in DISK_FULL_CODES:
                raise
            if seen := self._deferred_starts.defer(start, since, error, self.id):
                self._on_changes([seen])
        except Conflict as error:
            # The lease has ended. The next session begins with a new lease and gets the same order.
            raise Retry("iris.no_lease", error.sentence) from error
        except Error as error:
            # It can never start here, so it is reported as ended.
            self._on_changes(
                [
                    AttemptStatus(
                        attempt, Phase.ENDED, AttemptExit(ExitKind.NOT_STARTED, message=error.sentence)
                    )
                ]
            )

    async def _stop(self, attempt: AttemptId) -> None:
        self._deferred_starts.pop(attempt)
        try:
            await self._runtime.stop(attempt, _STOP_GRACE)
        except NotFound:
            # Orders arrive in sequence, so an attempt that is unknown now will not be started later.
            self._on_changes(
                [
                    AttemptStatus(
                        attempt, Phase.ENDED, AttemptExit(ExitKind.STOPPED, message="it had not begun")
                    )
                ]
            )

    async def _message(self, seen: AttemptStatus) -> pb.Seen:
        message = pb.Seen(attempt=seen.attempt, phase=seen.phase, report_key=self._keys.get(seen.attempt))
        if seen.end is not None:
            message.kind, message.code, message.message = seen.end.kind, seen.end.code, seen.end.message
            message.log = await self._logs.rest(self.id, seen.attempt)
            message.usage = self._usage.final_usage(seen.attempt, seen.end)
            if seen.end.result is not None:
                try:
                    await blob_transfer.attach_result(self._jobs, message, Path(seen.end.result))
                except FileNotFoundError:
                    message.kind, message.message = ExitKind.LOST, "its result is gone"
                except (Invalid, Denied) as error:
                    if isinstance(error, Unauthenticated) or error.code == "iris.blob_part":
                        # The next session sends the result again from its beginning.
                        raise
                    # The controller refuses the result, which fails the attempt but not the worker.
                    message.kind, message.code, message.message = ExitKind.EXIT, 1, error.sentence
        return message
