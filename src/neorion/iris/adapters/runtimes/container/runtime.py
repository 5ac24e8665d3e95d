"""The runtime port over containers: what a runner reports, and what its engine shows, become phases and ends."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.to_thread
from msgspec.structs import replace

from neorion.iris.adapters.runtimes.container import verdict
from neorion.iris.adapters.runtimes.container.attempt import ContainerAttempt, Creation
from neorion.iris.adapters.runtimes.container.attempt_store import AttemptStore, StoredOrder
from neorion.iris.adapters.runtimes.container.bundle_archive import as_archive
from neorion.iris.adapters.runtimes.container.engine import (
    ContainerEngine,
    ContainerSpec,
    ContainerState,
    ContainerStatus,
)
from neorion.iris.adapters.runtimes.container.gang import Gang, led_from
from neorion.iris.adapters.runtimes.container.lease import WorkerLease
from neorion.iris.adapters.runtimes.container.messages import (
    ADDRESS_ENV,
    ATTEMPT_ENV,
    LEADER_ENV,
    TOKEN_ENV,
    FromRunner,
    Hello,
    Rejected,
    Sender,
)
from neorion.iris.adapters.runtimes.container.runner_link import RunnerLink
from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress, RunnerServer
from neorion.iris.adapters.runtimes.container.session import RunnerSession, SessionContext
from neorion.iris.adapters.runtimes.process import log_files
from neorion.iris.adapters.runtimes.process.protocol import AttemptReport, ExitInfo
from neorion.iris.adapters.runtimes.process.runtime import start_request, unknown_attempt
from neorion.iris.adapters.runtimes.report_reader import ReportReader
from neorion.iris.model import AttemptId, ExitKind
from neorion.iris.ports import AttemptExit, AttemptSpec, AttemptStatus, AttemptUsage, Phase
from neorion.keel.base import Conflict, Duration, Error, Retry
from neorion.keel.clock import Clock, Rng
from neorion.keel.run import Backoff
from neorion.keel.telemetry import logger

log = logger(__name__)

# The controller's choice of GPUs counts on the machine, not in a container that has no others.
GPUS_ENV: Final = "CUDA_VISIBLE_DEVICES"
LOOK_EVERY: Final = Duration.of(ms=200)
_GRACE: Final = Duration.of(seconds=10)
_AGAIN: Final = Backoff(first=Duration.of(ms=200), most=Duration.of(seconds=20), attempts=1_000_000_000)
_REQUESTS_MAX: Final = 32


class ContainerRuntime(AbstractAsyncContextManager["ContainerRuntime"]):
    """Attempts in containers of one engine.

    Leaving it leaves containers alone: their tasks go on until their leases end, and the next runtime with the same
    folder and engine finds them.
    """

    def __init__(
        self, root: Path, engine: ContainerEngine, address: RunnerAddress, clock: Clock, rng: Rng
    ) -> None:
        root = root.absolute()
        self._engine = engine
        self._clock = clock
        self._rng = rng
        self._store = AttemptStore(root / "attempts")
        self._attempts: dict[AttemptId, ContainerAttempt] = {}
        self._lease = WorkerLease(root / "lease", clock)
        self._readers: set[ReportReader] = set()
        self._server = RunnerServer(root / "runners", address, self._session)
        self._context = SessionContext(self._store, self._grant, self._running, self._finish)
        self._requests = anyio.CapacityLimiter(_REQUESTS_MAX)
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        for kept in self._store.load():
            attempt = ContainerAttempt(AttemptId(kept.order.job.attempt), kept.order, kept.phase, kept.end)
            attempt.stop_grace = _GRACE if kept.stopping else None
            # Its runner was granted no more than that.
            attempt.granted_until = self._lease.until if kept.phase is Phase.RUNNING else None
            attempt.ending = kept.end is not None
            self._attempts[attempt.id] = attempt
        await self._group.__aenter__()
        try:
            await self._group.start(self._server.serve)
            await self._group.start(self._follow_engine)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        self._group.start_soon(self._give_up_loop)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reader in self._readers:
            reader.close()
        self._group.cancel_scope.cancel()
        await self._group.__aexit__(kind, error, trace)

    @property
    def boot(self) -> str:
        return self._engine.boot

    async def start(self, order: AttemptSpec) -> None:
        if order.attempt in self._attempts:
            return
        request = start_request(order)
        if not self._lease.left:
            raise Conflict(
                "runtime.no_lease",
                "Nothing may be started while the worker is out of touch with its controller.",
                hint="Renew the lease first.",
            )
        variables = dict(request.variables)
        gpus = tuple(filter(None, variables.pop(GPUS_ENV, "").split(",")))
        gang = Gang.of(dict(order.variables))
        if gang and (host := self._engine.leader_host(gang.leader)):
            variables = led_from(variables, host)
        # The container has the limits, and a process of its own.
        job = replace(request, variables=list(variables.items()), cpu_milli=0, memory=0, pool="")
        stored = await self._accept(order, StoredOrder(job, order.resources, gpus, gang))
        if order.attempt in self._attempts:
            return
        attempt = self._attempts[order.attempt] = ContainerAttempt(order.attempt, stored)
        self._lease.save()
        self._publish(attempt)
        self._group.start_soon(self._create, attempt)

    async def _accept(self, order: AttemptSpec, stored: StoredOrder) -> StoredOrder:
        """Writes the order down, with a bundle that is one file."""
        try:
            await anyio.to_thread.run_sync(self._store.add, order.attempt)
            if order.bundle is not None:
                archive = await as_archive(order.bundle, self._store.bundle(order.attempt))
                stored = replace(stored, job=replace(stored.job, bundle=str(archive)))
            await anyio.to_thread.run_sync(self._store.accept, order.attempt, stored)
        except OSError as error:
            self._store.remove(order.attempt)
            raise Retry(
                "runtime.disk", "There is no room for another attempt.", hint="Free space on the worker."
            ) from error
        return stored

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        one = self._attempts.get(attempt)
        if one is None:
            raise unknown_attempt(attempt)
        if one.ending:
            return
        one.stop_grace = grace
        self._store.stopping(attempt)
        if one.link is not None:
            await one.link.stop(grace)
        elif one.creation is Creation.MADE:
            self._group.start_soon(self._remove, one.id, grace)

    async def forget(self, *attempts: AttemptId) -> None:
        known = [self._attempts[attempt] for attempt in attempts if attempt in self._attempts]
        if any(one.end is None for one in known):
            raise Conflict("runtime.running", "The attempt has not ended.", hint="Stop it first.")
        for one in known:
            del self._attempts[one.id]
            await anyio.to_thread.run_sync(self._store.remove, one.id)

    async def seen(self) -> Sequence[AttemptStatus]:
        return [self._status(one.report) for one in self._attempts.values()]

    async def changes(self) -> AsyncGenerator[Sequence[AttemptStatus], None]:
        reader = ReportReader({str(one.id): one.report for one in self._attempts.values()})
        self._readers.add(reader)
        try:
            while (reports := await reader.next()) is not None:
                yield [self._status(report) for report in reports]
        finally:
            self._readers.discard(reader)

    async def renew(self, life: Duration) -> None:
        self._lease.renew(life)
        if any(one.end is None for one in self._attempts.values()):
            self._lease.save()

    async def stats(self) -> Mapping[AttemptId, AttemptUsage]:
        found = dict[AttemptId, AttemptUsage]()

        async def ask(one: ContainerAttempt, link: RunnerLink) -> None:
            if (usage := await link.usage()) is not None and usage.processes:
                found[one.id] = AttemptUsage(usage.cpu_seconds, usage.memory_bytes, usage.processes)

        async with anyio.create_task_group() as group:
            for one in self._attempts.values():
                if one.link is not None and not one.ending:
                    group.start_soon(ask, one, one.link)
        return found

    def log(self, attempt: AttemptId) -> Path:
        return self._store.log(attempt)

    def kept_from(self, attempt: AttemptId) -> int:
        path = self.log(attempt)
        try:
            return log_files.kept_from(path) if path.stat().st_size > log_files.LOG_BYTES_MAX else 0
        except FileNotFoundError:
            return 0

    async def _create(self, one: ContainerAttempt) -> None:
        """Until the engine takes it, refuses it for good, or it is to stop."""
        variables = {
            ADDRESS_ENV: self._server.address,
            ATTEMPT_ENV: str(one.id),
            TOKEN_ENV: self._server.token(one.id),
        }
        gang = one.order.gang
        if gang and (leader := self._engine.leader_host(gang.leader)):
            variables[LEADER_ENV] = leader
        spec = ContainerSpec(one.id, one.order.resources, one.order.gpus, variables, gang)
        failures = 0
        while not one.ending:
            if one.stop_requested:
                await self._finish(one, ExitInfo(ExitKind.STOPPED, 0, "It was stopped before it started."))
                return
            one.creation = Creation.ASKED
            try:
                async with self._requests:
                    await self._engine.create(spec)
            except Retry as error:
                failures += 1
                log.warning("no container yet", attempt=one.id, why=error.sentence)
                await self._clock.sleep(max(_AGAIN.wait(failures, self._rng), error.after or Duration(0)))
            except Error as error:
                await self._finish(one, ExitInfo(ExitKind.NOT_STARTED, 0, error.sentence))
                return
            else:
                one.creation = Creation.MADE
                if one.stop_grace is not None or one.ending:
                    await self._remove(one.id, one.stop_grace or _GRACE)
                return

    async def _remove(self, attempt: AttemptId, grace: Duration) -> None:
        failures = 0
        while True:
            try:
                async with self._requests:
                    await self._engine.remove(attempt, grace)
            except Error as error:
                failures += 1
                log.warning("a container is not removed yet", attempt=attempt, why=error.sentence)
                await self._clock.sleep(_AGAIN.wait(failures, self._rng))
            else:
                return

    async def _follow_engine(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with aclosing(self._engine.changes()) as changes:
            self._adopt(await anext(changes))
            task_status.started()
            async for batch in changes:
                for status in batch:
                    await self._observe(status)

    def _adopt(self, statuses: Sequence[ContainerStatus]) -> None:
        """Takes over the containers of the worker's last life, and removes those that no attempt needs."""
        now = self._clock.monotonic()
        found = {status.attempt: status for status in statuses}
        for one in self._attempts.values():
            if (status := found.get(one.id)) is not None:
                one.creation = Creation.MADE
                one.observe(status, now)
                if one.stop_grace is not None and not one.ending:
                    self._group.start_soon(self._remove, one.id, one.stop_grace)
            elif one.phase is Phase.RUNNING:
                one.observe(ContainerStatus(one.id, ContainerState.GONE), now)
            elif not one.ending:
                self._group.start_soon(self._create, one)
        for attempt in found:
            if (one := self._attempts.get(attempt)) is None or one.ending:
                self._group.start_soon(self._remove, attempt, _GRACE)

    async def _observe(self, status: ContainerStatus) -> None:
        one = self._attempts.get(status.attempt)
        if one is None:
            if status.state is not ContainerState.GONE:
                self._group.start_soon(self._remove, status.attempt, _GRACE)
            return
        one.observe(status, self._clock.monotonic())
        await self._check(one)

    async def _give_up_loop(self) -> None:
        while True:
            await self._clock.sleep(LOOK_EVERY)
            for one in list(self._attempts.values()):
                await self._check(one)

    async def _check(self, one: ContainerAttempt) -> None:
        if (end := one.overdue(self._clock.monotonic(), self._lease.until)) is not None:
            await self._finish(one, end)

    async def _session(
        self, attempt: AttemptId, hello: Hello, messages: AsyncGenerator[FromRunner, None], sender: Sender
    ) -> None:
        one = self._attempts.get(attempt)
        if one is None or one.ending:
            await sender.send(Rejected("The worker has no such attempt that has not ended."))
            return
        last, one.link = one.link, RunnerLink(sender)
        link = one.link
        if last is not None:
            await last.close()
        try:
            await RunnerSession(one, link, self._context).run(hello, messages)
        finally:
            if one.link is link:
                one.link = None

    def _grant(self, one: ContainerAttempt) -> int:
        one.granted_until = max(one.granted_until or 0.0, self._lease.until)
        return self._lease.left.ns

    async def _running(self, one: ContainerAttempt) -> None:
        if one.phase is Phase.BUILDING and not one.ending:
            self._store.begun(one.id)
            one.phase = Phase.RUNNING
            self._publish(one)

    async def _finish(self, one: ContainerAttempt, end: ExitInfo) -> None:
        """Writes the end down, then tells it. The first end stays."""
        if one.ending:
            return
        one.ending = True
        end = verdict.reported(end, one.status, stop_requested=one.stop_requested)
        await anyio.to_thread.run_sync(self._store.end, one.id, end)
        one.end, one.phase = end, Phase.ENDED
        self._publish(one)
        if one.creation is Creation.MADE:
            self._group.start_soon(self._remove, one.id, _GRACE)

    def _publish(self, one: ContainerAttempt) -> None:
        for reader in self._readers:
            reader.add({str(one.id): one.report})

    def _status(self, report: AttemptReport) -> AttemptStatus:
        attempt, end = AttemptId(report.attempt), None
        if (ended := report.ended) is not None:
            result = self._store.result(attempt) if ended.result else None
            end = AttemptExit(ended.kind, ended.code, ended.message, result, ended.cpu_ns / 1e9, ended.memory)
        return AttemptStatus(attempt, report.phase, end)
