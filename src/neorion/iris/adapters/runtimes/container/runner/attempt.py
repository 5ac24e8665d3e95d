"""The attempt of a runner: an order from its worker, run by the process runtime of the container."""

from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from neorion.iris.adapters.runtimes.container.messages import (
    Lease,
    LeaseRequest,
    UsageReport,
)
from neorion.iris.adapters.runtimes.container.runner.memory_events import has_oom_kill
from neorion.iris.adapters.runtimes.container.runner.order_files import OrderFiles
from neorion.iris.adapters.runtimes.process.protocol import ExitInfo
from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.model import AttemptId, ExitKind
from neorion.iris.ports import AttemptExit, AttemptStatus, Phase
from neorion.keel.base import Conflict, Duration, Error
from neorion.keel.clock import Clock

_KILLED = (ExitKind.EXIT, ExitKind.SIGNAL)
# Asked again with each lease. Until then orders to stop wait.
_RESOLVE_S_MAX = 2


class RunnerAttempt(AbstractAsyncContextManager["RunnerAttempt"]):
    """Begins when its order is whole and its lease runs. The fork server holds the lease, so that it needs no runner to end it."""

    def __init__(
        self, attempt: AttemptId, files: OrderFiles, runtime: ProcessRuntime, clock: Clock, leader: str = ""
    ) -> None:
        """`leader` is the name of its gang's leader, in a gang that finds it by name."""
        self.id = attempt
        self.files = files
        self._leader = leader
        self.phase = Phase.BUILDING
        self.end: ExitInfo | None = None
        self.result: Path | None = None
        self.begun = False
        # Set at the next change; a reader takes it before it looks.
        self.changed = anyio.Event()
        self._clock = clock
        self._leased = False
        self._runtime = runtime
        self._group = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._runtime.__aenter__()
        await self._group.__aenter__()
        self._group.start_soon(self._watch)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._group.cancel_scope.cancel()
        await self._group.__aexit__(kind, error, trace)
        await self._runtime.__aexit__(kind, error, trace)

    @property
    def log(self) -> Path:
        return self._runtime.log(self.id)

    @property
    def kept_from(self) -> int:
        return self._runtime.kept_from(self.id)

    def lease_request(self) -> LeaseRequest:
        return LeaseRequest(self._now_ns())

    async def renew(self, lease: Lease) -> None:
        """The time since the question is no part of the lease."""
        left = lease.left_ns - (self._now_ns() - lease.asked_ns)
        self._leased = left > 0
        await self._runtime.renew(Duration(max(left, 1)))

    async def begin(self) -> None:
        """Starts it if nothing is missing any more."""
        spec = self.files.spec()
        if self.begun or not self._leased or spec is None or not await self._knows_leader():
            return
        try:
            await self._runtime.start(spec)
        except Conflict:
            # The lease has just ended; another one may come.
            return
        except Error as error:
            self._finish(AttemptExit(ExitKind.NOT_STARTED, message=error.sentence))
        else:
            self.log.touch(mode=0o600)
        self.begun = True
        self._notify()

    async def _knows_leader(self) -> bool:
        """False until the leader has an address. Programs repeat connections that fail, but not names that are unknown."""
        if not self._leader:
            return True
        with anyio.move_on_after(_RESOLVE_S_MAX):
            try:
                await anyio.getaddrinfo(self._leader, None)
            except OSError:
                return False
            self._leader = ""
        return not self._leader

    async def stop(self, grace: Duration) -> None:
        if not self.begun:
            self.begun = True
            self._finish(AttemptExit(ExitKind.STOPPED, message="It was stopped before it started."))
            self._notify()
        elif self.end is None:
            await self._runtime.stop(self.id, grace)

    async def usage(self) -> UsageReport:
        found = (await self._runtime.stats()).get(self.id)
        if found is None:
            return UsageReport(0.0, 0, 0)
        return UsageReport(found.cpu_seconds, found.memory_bytes, found.processes)

    async def _watch(self) -> None:
        async with aclosing(self._runtime.changes()) as changes:
            async for batch in changes:
                for status in batch:
                    self._take(status)

    def _take(self, status: AttemptStatus) -> None:
        self.phase = status.phase
        if status.end is not None and self.end is None:
            self._finish(status.end)
        self._notify()

    def _finish(self, end: AttemptExit) -> None:
        if end.kind in _KILLED and not end.well and has_oom_kill():
            end = replace(end, kind=ExitKind.OUT_OF_MEMORY, message="It used more memory than it asked for.")
        self.result = None if end.result is None else Path(end.result)
        self.end = ExitInfo(
            end.kind,
            end.code,
            end.message,
            end.result is not None,
            round(end.cpu_seconds * 1e9),
            end.memory_bytes,
        )

    def _notify(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    def _now_ns(self) -> int:
        return round(self._clock.monotonic() * 1e9)
