"""Implementation of the runtime port in the worker, with the fork server."""

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

    Entering connects to the fork server of this directory, or starts one. Leaving keeps the fork server and its
    tasks: they run until the end of the lease, and the next runtime with this directory finds them. `clock` is the
    system's, which the fork server uses too.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        self._files = RuntimeLayout(root.absolute())
        self._clock = clock
        self._states: dict[str, AttemptReport] = {}
        self._listeners: set[ReportReader] = set()
        self._lease_until_ns = 0
        self._trash = anyio.Event()
        self._group = anyio.create_task_group()
        self._client = ForkServerClient(self._files, self._update, self._renewal)

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        try:
            await self._group.start(self._client.run)
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
        await self._ask(Start(self._client.next_id(), job))
        # Known from here on. The fork server reports starts a little later, and ends at once.
        self._states.setdefault(job.attempt, AttemptReport(job.attempt, Phase.BUILDING))

    async def stop(self, attempt: AttemptId, grace: Duration) -> None:
        await self._ask(Stop(self._client.next_id(), str(attempt), grace.ns))

    async def forget(self, *attempts: AttemptId) -> None:
        await self._ask(Forget(self._client.next_id(), list(map(str, attempts))))
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
        await self._ask(Renew(self._client.next_id(), self._lease_until_ns))

    async def stats(self) -> Mapping[AttemptId, AttemptUsage]:
        running = {state.pid: AttemptId(state.attempt) for state in self._states.values() if state.pid}
        if not running:
            return {}
        # In a thread, because reading /proc of a large machine would block the loop.
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
            # Called for every part that is sent, and few logs reach this size.
            return log_files.kept_from(path) if path.stat().st_size > log_files.LOG_BYTES_MAX else 0
        except FileNotFoundError:
            return 0

    def _update(self, states: Sequence[AttemptReport]) -> None:
        changed = {state.attempt: state for state in states}
        self._states |= changed
        for listener in self._listeners:
            listener.add(changed)

    def _renewal(self) -> Request | None:
        """Renewal of the lease, for a new fork server."""
        return Renew(self._client.next_id(), self._lease_until_ns) if self._lease_until_ns else None

    def _seen(self, state: AttemptReport) -> AttemptStatus:
        end = None
        if (ended := state.ended) is not None:
            result = Path(self._files.attempt(state.attempt).result) if ended.result else None
            end = AttemptExit(ended.kind, ended.code, ended.message, result, ended.cpu_ns / 1e9, ended.memory)
        return AttemptStatus(AttemptId(state.attempt), state.phase, end)

    async def _ask(self, request: Start | Stop | Forget | Renew) -> None:
        match await self._client.ask(request):
            case Refusal.UNKNOWN if isinstance(request, Stop):
                raise unknown_attempt(request.attempt)
            case Refusal.NOT_ENDED:
                raise Conflict("runtime.running", "The attempt has not ended.", hint="Stop it first.")
            case Refusal.NO_LEASE:
                raise Conflict(
                    "runtime.no_lease",
                    "An attempt cannot start while the worker has no contact to its controller.",
                    hint="Renew the lease first.",
                )
            case Refusal.NO_DISK:
                raise Retry(
                    "runtime.disk",
                    "There is no room for another attempt.",
                    hint="Free space on the worker.",
                )
            case _:
                return

    async def _clean_up_loop(self) -> None:
        """Empties the trash: that of an earlier worker at once, then after each forgotten attempt."""
        while True:
            self._trash = anyio.Event()
            await anyio.to_thread.run_sync(dir_cache.sweep, self._files)
            await self._trash.wait()


def start_request(order: AttemptSpec) -> StartRequest:
    """Converts a spec to plain values. Raises Invalid if it cannot run."""
    if not is_safe(order.attempt):
        raise Invalid(
            "runtime.attempt_id",
            f"{str(order.attempt)[:80]!r} is not a valid attempt id.",
            hint="Generate the id with Ids.",
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
            "The order has no program or function to run, or an invalid variable.",
            hint="Set the command's program or the function's file, and use no text with zero bytes.",
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
        "runtime.attempt", f"The attempt {attempt} does not exist.", hint="List the attempts with `seen`."
    )
