"""The worker's side: the runtime port, over the fork server's."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from neorion.iris.adapters.runtimes.process import log_files, procfs
from neorion.iris.adapters.runtimes.process.client import ForkServerClient
from neorion.iris.adapters.runtimes.process.forkserver import dir_cache
from neorion.iris.adapters.runtimes.process.layout import RuntimeLayout, is_safe
from neorion.iris.adapters.runtimes.process.protocol import (
    AttemptReport,
    Forget,
    Refusal,
    Renew,
    Request,
    Start,
    StartRequest,
    Stop,
)
from neorion.iris.adapters.runtimes.report_reader import ReportReader
from neorion.iris.model import AttemptId, Command, FunctionCall
from neorion.iris.ports import AttemptExit, AttemptSpec, AttemptStatus, AttemptUsage, Phase
from neorion.keel.base import Conflict, Duration, Invalid, NotFound, Retry
from neorion.keel.clock import Clock
from neorion.keel.run import only_error

_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ProcessRuntime(AbstractAsyncContextManager["ProcessRuntime"]):
    """Attempts as process trees of this machine.

    Entering connects to the fork server of this directory and starts one where there is none; leaving leaves it and its
    tasks alone: they go on until the lease is over, and the next runtime with the same directory finds them. `clock` is the
    system's: the fork server goes by the same one.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self._files = RuntimeLayout(root.absolute())
        self._clock = clock
        self._states: dict[str, AttemptReport] = {}
        self._listeners: set[ReportReader] = set()
        self._lease_until_ns = 0
        self._trash = anyio.Event()
        self._group = anyio.create_task_group()
        self._link = ForkServerClient(self._files, self._told, self._renewal)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        try:
            await self._group.start(self._link.run)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        self._group.start_soon(self._clean_up_loop)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        for listener in self._listeners:
            listener.close()
        self._group.cancel_scope.cancel()
        try:
            return await self._group.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            only = only_error(group)
            if only is error:
                return False
            raise only from None

    @property
    def boot(self) -> str:
        return _BOOT.read_text().strip()

    async def start(self, order: AttemptSpec) -> None:
        job = start_request(order)
        await self._ask(Start(self._link.next_id(), job))
        # Known from here on; the fork server tells of beginnings a little later, and of an end at once.
        self._states.setdefault(job.attempt, AttemptReport(job.attempt, Phase.BUILDING))

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        await self._ask(Stop(self._link.next_id(), str(attempt), grace.ns))

    async def forget(self, *attempts: AttemptId) -> None:
        await self._ask(Forget(self._link.next_id(), list(map(str, attempts))))
        for attempt in attempts:
            self._states.pop(attempt, None)
        self._trash.set()

    async def seen(self) -> Sequence[AttemptStatus]:
        return [self._seen(state) for state in self._states.values()]

    async def changes(self) -> AsyncGenerator[Sequence[AttemptStatus], None]:
        listener = ReportReader(dict(self._states))
        self._listeners.add(listener)
        try:
            while (states := await listener.next()) is not None:
                yield [self._seen(state) for state in states]
        finally:
            self._listeners.discard(listener)

    async def renew(self, life: Duration) -> None:
        self._lease_until_ns = round(self._clock.monotonic() * 1e9) + life.ns
        await self._ask(Renew(self._link.next_id(), self._lease_until_ns))

    async def stats(self) -> Mapping[AttemptId, AttemptUsage]:
        running = {state.pid: AttemptId(state.attempt) for state in self._states.values() if state.pid}
        if not running:
            return {}
        # Reading /proc of a large machine takes longer than a loop may be held up.
        found = await anyio.to_thread.run_sync(procfs.families, running)
        return {
            running[root]: AttemptUsage(
                sum(process.cpu_seconds for process in family),
                sum(process.memory_bytes for process in family),
                len(family),
            )
            for root, family in found.items()
        }

    def log(self, attempt: AttemptId) -> Path:
        return Path(self._files.attempt(attempt).log)

    def kept_from(self, attempt: AttemptId) -> int:
        path = self.log(attempt)
        try:
            # Asked with every part that is sent, and few logs ever come so far.
            return log_files.kept_from(path) if path.stat().st_size > log_files.LOG_BYTES_MAX else 0
        except FileNotFoundError:
            return 0

    def _told(self, states: Sequence[AttemptReport]) -> None:
        changed = {state.attempt: state for state in states}
        self._states |= changed
        for listener in self._listeners:
            listener.add(changed)

    def _renewal(self) -> Request | None:
        """A new fork server does not know how long its tasks may run."""
        return Renew(self._link.next_id(), self._lease_until_ns) if self._lease_until_ns else None

    def _seen(self, state: AttemptReport) -> AttemptStatus:
        end = None
        if (ended := state.ended) is not None:
            result = Path(self._files.attempt(state.attempt).result) if ended.result else None
            end = AttemptExit(ended.kind, ended.code, ended.message, result, ended.cpu_ns / 1e9, ended.memory)
        return AttemptStatus(AttemptId(state.attempt), state.phase, end)

    async def _ask(self, request: Start | Stop | Forget | Renew) -> None:
        match await self._link.ask(request):
            case Refusal.UNKNOWN if isinstance(request, Stop):
                raise unknown_attempt(request.attempt)
            case Refusal.NOT_ENDED:
                raise Conflict("runtime.running", "The attempt has not ended.", hint="Stop it first.")
            case Refusal.NO_LEASE:
                raise Conflict(
                    "runtime.no_lease",
                    "Nothing may be started while the worker is out of touch with its controller.",
                    hint="Renew the lease first.",
                )
            case Refusal.NO_DISK:
                raise Retry(
                    "runtime.disk", "There is no room for another attempt.", hint="Free space on the worker."
                )
            case _:
                return

    async def _clean_up_loop(self) -> None:
        """What was forgotten in the meantime goes together; what an earlier worker left, at once."""
        while True:
            self._trash = anyio.Event()
            await anyio.to_thread.run_sync(dir_cache.sweep, self._files)
            await self._trash.wait()


def start_request(order: AttemptSpec) -> StartRequest:
    """The order in plain values. Invalid where it cannot be run."""
    if not is_safe(order.attempt):
        raise Invalid(
            "runtime.attempt_id",
            f"{str(order.attempt)[:80]!r} is no attempt's id.",
            hint="Make one with Ids.",
        )
    match order.entry:
        case Command(argv):
            wrong = not argv or not argv[0] or any("\0" in text for text in argv)
        case FunctionCall():
            argv, wrong = (), order.function is None
    variables = (*order.environment.variables, *order.variables)
    if wrong or any(not name or "=" in name or "\0" in name + value for name, value in variables):
        raise Invalid(
            "runtime.order",
            "The order has no program or function to run, or a variable that is none.",
            hint="Give a command its first word and a call its function's file, and no text with zero bytes.",
        )
    packages, setup = order.environment.packages, order.environment.setup
    return StartRequest(
        str(order.attempt),
        list(argv),
        str(order.function or "") if not argv else "",
        str(order.input or ""),
        str(order.bundle or ""),
        list(variables),
        list(packages),
        list(setup),
        order.resources.cpu_milli,
        order.resources.memory,
        order.pool,
        order.run_limit.ns if order.run_limit is not None else 0,
    )


def unknown_attempt(attempt: str) -> NotFound:
    return NotFound(
        "runtime.attempt", f"There is no attempt {attempt} here.", hint="List the attempts with `seen`."
    )
