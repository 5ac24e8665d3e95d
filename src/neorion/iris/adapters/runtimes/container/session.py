"""One connection of a runner: gives it its order and its lease, and takes in what it reports."""

import errno
import platform
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neorion.iris.adapters.runtimes.container.attempt import ContainerAttempt
from neorion.iris.adapters.runtimes.container.attempt_store import AttemptStore
from neorion.iris.adapters.runtimes.container.messages import (
    PART_BYTES,
    EndKept,
    EndReport,
    FilePart,
    FromRunner,
    Hello,
    Lease,
    LeaseRequest,
    LogPart,
    Order,
    PhaseReport,
    ResultPart,
    UsageReport,
    Welcome,
)
from neorion.iris.adapters.runtimes.container.runner.order_files import named_files
from neorion.iris.adapters.runtimes.container.runner_link import RunnerLink
from neorion.iris.adapters.runtimes.process import log_files
from neorion.iris.adapters.runtimes.process.protocol import ExitInfo
from neorion.iris.model import ExitKind
from neorion.iris.ports import Phase
from neorion.keel.telemetry import logger

log = logger(__name__)

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_PYTHON: Final = ".".join(platform.python_version_tuple()[:2])
# How much of a log may come between two looks at its size.
_TRIM_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The parts of the runtime that a session uses. `grant` returns the nanoseconds that are left of the lease, and notes it."""

    store: AttemptStore
    grant: Callable[[ContainerAttempt], int]
    running: Callable[[ContainerAttempt], Awaitable[None]]
    finish: Callable[[ContainerAttempt, ExitInfo], Awaitable[None]]


class RunnerSession:
    """Begins with a Hello whose token was good."""

    def __init__(self, attempt: ContainerAttempt, link: RunnerLink, context: SessionContext) -> None:
        self._attempt = attempt
        self._link = link
        self._context = context
        self._log = context.store.log(attempt.id)
        self._result = context.store.result_part(attempt.id)
        self._untrimmed = 0
        self._no_room = False

    async def run(self, hello: Hello, messages: AsyncGenerator[FromRunner, None]) -> None:
        job = self._attempt.order.job
        if not job.argv and hello.python != _PYTHON:
            sentence = (
                f"The image of the task has Python {hello.python}; functions of this worker need {_PYTHON}."
            )
            await self._finish(ExitInfo(ExitKind.NOT_STARTED, 0, sentence))
            return
        if self._attempt.stop_grace is not None:
            await self._link.stop(self._attempt.stop_grace)
        await self._link.send(Welcome(self._log.stat().st_size))
        if not hello.begun:
            await self._send_order()
        async for message in messages:
            await self._take(message)

    async def _take(self, message: FromRunner) -> None:
        match message:
            case LeaseRequest(asked_ns):
                await self._link.send(Lease(asked_ns, self._context.grant(self._attempt)))
            case PhaseReport(phase):
                if phase is Phase.RUNNING:
                    await self._context.running(self._attempt)
            case LogPart(offset, data):
                self._keep_log(offset, data)
            case ResultPart(offset, data):
                self._keep_result(offset, data)
            case UsageReport():
                self._link.take_usage(message)
            case EndReport(end):
                if end.result and self._no_room:
                    why = "There was no room for its value on the disk of its worker."
                    end = ExitInfo(ExitKind.NO_ROOM, end.code, why, False, end.cpu_ns, end.memory)
                await self._finish(end)
            case Hello():
                return

    async def _finish(self, end: ExitInfo) -> None:
        await self._context.finish(self._attempt, end)
        await self._link.send(EndKept())

    async def _send_order(self) -> None:
        files = named_files(self._attempt.order.job)
        sizes = [(name, path.stat().st_size) for name, path in files]
        await self._link.send(Order(self._attempt.order.job, sizes))
        for _, path in files:
            await self._send_file(path)

    async def _send_file(self, path: Path) -> None:
        with path.open("rb") as file:
            while data := file.read(PART_BYTES):
                await self._link.send(FilePart(data))

    def _keep_log(self, offset: int, data: bytes) -> None:
        try:
            with self._log.open("r+b") as file:
                file.seek(offset)
                file.write(data)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            log.warning("no room for a log", attempt=self._attempt.id)
        self._untrimmed += len(data)
        if self._untrimmed > _TRIM_BYTES:
            self._untrimmed = 0
            log_files.trim(str(self._log))

    def _keep_result(self, offset: int, data: bytes) -> None:
        try:
            with self._result.open("r+b" if offset else "wb") as file:
                file.seek(offset)
                file.write(data)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._no_room = True
