"""The runner's connection to its worker: kept up, made again when it breaks, and left when the worker has the attempt's end."""

import platform
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import ByteStream

from neorion.iris.adapters.runtimes.container.messages import (
    PART_BYTES,
    EndKept,
    EndReport,
    FilePart,
    Hello,
    Lease,
    LogPart,
    Order,
    PhaseReport,
    Rejected,
    ResultPart,
    Sender,
    StopOrder,
    ToRunner,
    UsageRequest,
    Welcome,
    to_runner,
)
from neorion.iris.adapters.runtimes.container.runner.attempt import RunnerAttempt
from neorion.iris.adapters.runtimes.process.protocol import ExitInfo
from neorion.iris.adapters.runtimes.process.syscalls import Modifications
from neorion.keel.base import Duration, Terminal
from neorion.keel.clock import Clock, Rng
from neorion.keel.rpc.pin import PinnedToken, pinned_context
from neorion.keel.run import Backoff, only_error
from neorion.keel.telemetry import logger

log = logger(__name__)

BEAT: Final = Duration.of(seconds=1)
# Engines send a signal before they end a container, and do not say how long they wait.
_SIGNAL_GRACE: Final = Duration.of(seconds=20)
# How long an end is offered to a worker that cannot be reached. By then it counts the attempt as lost.
_KEEP: Final = Duration.of(minutes=10)
_CONNECT_S_MAX: Final = 10
_RECONNECT: Final = Backoff(first=Duration.of(ms=20), most=Duration.of(seconds=2), attempts=1_000_000_000)
_BROKEN: Final = (OSError, TimeoutError, anyio.EndOfStream, anyio.BrokenResourceError)


@dataclass(frozen=True, slots=True)
class WorkerAddress:
    """Where the worker listens. The token begins with the pin of the worker's key."""

    host: str
    port: int
    token: str


class AttemptRunner:
    """Reports one attempt to its worker. The task ends with its lease, whether or not the worker can be reached."""

    def __init__(self, attempt: RunnerAttempt, worker: WorkerAddress, clock: Clock, rng: Rng) -> None:
        self._attempt = attempt
        self._worker = worker
        self._pinned = PinnedToken.parse(worker.token)
        self._clock = clock
        self._rng = rng
        self._done = anyio.Event()

    async def run(self) -> None:
        """Returns when the worker has the end, or will not take it."""
        async with self._attempt, anyio.create_task_group() as group:
            for task in (self._stay_connected, self._heed_signals, self._give_up):
                group.start_soon(task)
            await self._done.wait()
            group.cancel_scope.cancel()

    async def _heed_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                await self._attempt.stop(_SIGNAL_GRACE)

    async def _give_up(self) -> None:
        while self._attempt.end is None:
            await self._attempt.changed.wait()
        await self._clock.sleep(_KEEP)
        self._done.set()

    async def _stay_connected(self) -> None:
        failures = 0
        while True:
            try:
                await self._connect()
                failures = 0
            except* _BROKEN as errors:
                failures += 1
                log.warning("no connection to the worker", why=repr(only_error(errors)))
            except* Terminal as errors:
                log.warning("the worker refuses this runner", why=str(only_error(errors)))
                self._done.set()
            await self._clock.sleep(_RECONNECT.wait(max(failures, 1), self._rng))

    async def _connect(self) -> None:
        with anyio.fail_after(_CONNECT_S_MAX):
            stream = await anyio.connect_tcp(
                self._worker.host,
                self._worker.port,
                ssl_context=pinned_context(self._pinned.pin),
                tls_standard_compatible=False,
            )
        async with stream:
            sender = Sender(stream)
            python = ".".join(platform.python_version_tuple()[:2])
            attempt = self._attempt
            hello = Hello(str(attempt.id), self._pinned.token or "", python, attempt.begun)
            await sender.send(hello, attempt.lease_request())
            async with anyio.create_task_group() as group:
                group.start_soon(self._beat, sender)
                async with aclosing(_messages(stream)) as messages:
                    async for message in messages:
                        if isinstance(message, Welcome):
                            group.start_soon(self._report, sender, message.log_bytes)
                        await self._take(message, sender)

    async def _take(self, message: ToRunner, sender: Sender) -> None:
        attempt = self._attempt
        match message:
            case Order():
                attempt.files.expect(message)
            case FilePart():
                attempt.files.add(message.data)
            case Lease():
                await attempt.renew(message)
            case StopOrder():
                await attempt.stop(Duration(message.grace_ns))
            case UsageRequest():
                await sender.send(await attempt.usage())
            case Rejected():
                raise Terminal("runtime.runner_rejected", message.sentence)
            case EndKept():
                self._done.set()
            case Welcome():
                return
        await attempt.begin()

    async def _beat(self, sender: Sender) -> None:
        while True:
            await self._clock.sleep(BEAT)
            await sender.send(self._attempt.lease_request())

    async def _report(self, sender: Sender, offset: int) -> None:
        """Phases and the log as they come; at last the result and the end."""
        attempt = self._attempt
        while not attempt.begun:
            await attempt.changed.wait()
        with Modifications() as modifications:
            while True:
                changed, end = attempt.changed, attempt.end
                if end is None:
                    modifications.watch(str(attempt.log))
                    await sender.send(PhaseReport(attempt.phase))
                offset = await self._send_log(sender, offset)
                if end is not None:
                    await self._send_end(sender, end)
                    return
                await _first_of(lambda: anyio.wait_readable(modifications.fd), changed.wait)
                modifications.read()

    async def _send_log(self, sender: Sender, offset: int) -> int:
        if not self._attempt.log.exists():
            return offset
        with self._attempt.log.open("rb") as file:
            # What outgrew its room before it could be sent is gone.
            file.seek(max(offset, self._attempt.kept_from))
            while data := file.read(PART_BYTES):
                await sender.send(LogPart(file.tell() - len(data), data))
            return file.tell()

    async def _send_end(self, sender: Sender, end: ExitInfo) -> None:
        if self._attempt.result is not None:
            with self._attempt.result.open("rb") as file:
                while data := file.read(PART_BYTES):
                    await sender.send(ResultPart(file.tell() - len(data), data))
        await sender.send(EndReport(end))


async def _messages(stream: ByteStream) -> AsyncGenerator[ToRunner, None]:
    codec = to_runner()
    while True:
        for message in codec.feed(await stream.receive(PART_BYTES)):
            yield message


async def _first_of(*waits: Callable[[], Awaitable[None]]) -> None:
    async with anyio.create_task_group() as group:

        async def wait(one: Callable[[], Awaitable[None]]) -> None:
            await one()
            group.cancel_scope.cancel()

        for one in waits:
            group.start_soon(wait, one)
