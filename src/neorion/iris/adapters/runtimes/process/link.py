"""The worker's connection to its fork server: found or started, kept up, and made anew when it breaks."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import anyio
from anyio.abc import SocketStream, TaskStatus

from neorion.iris.adapters.runtimes.process import logs, surroundings, wire
from neorion.iris.adapters.runtimes.process.files import Files
from neorion.iris.adapters.runtimes.process.short import short_name
from neorion.iris.adapters.runtimes.process.wire import Done, Refusal, Report, Request, State, Told
from neorion.keel.base import Conflict, Retry, Terminal
from neorion.keel.telemetry import logger

log = logger(__name__)

# A fork server may be on its way out just when we knock; more often than this in a row is no coincidence.
TRIES = 3
# The interpreter's start, and the burial of what an earlier fork server left.
LAUNCH_S_MAX = 60
OWN_LOG_BYTES_MAX = 1 << 20
_MODULE = "neorion.iris.adapters.runtimes.process.forkserver"
# How the interpreter finds itself; nothing else of the worker's environment reaches the fork server.
_PASSED_ON = ("LD_LIBRARY_PATH", "PYTHONPATH")
_BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError)


class Link:
    """Sends requests, several in one frame where they come together, and matches the answers to them.

    Every request is idempotent, so those without an answer are sent again when the connection had to be made anew.
    """

    def __init__(
        self, files: Files, told: Callable[[Sequence[State]], None], first: Callable[[], Request | None]
    ) -> None:
        """`told` hears of changed states; `first` is what a fork server must hear before anything else."""
        self._files = files
        self._told = told
        self._first = first
        self._pending: dict[int, tuple[Request, asyncio.Future[Refusal]]] = {}
        self._outbox: list[Request] = []
        self._wake = asyncio.Event()
        self._last_id = 0
        self._closed = False

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def ask(self, request: Request) -> Refusal:
        if self._closed:
            raise _closed()
        answer: asyncio.Future[Refusal] = asyncio.get_running_loop().create_future()
        self._pending[request.id] = (request, answer)
        self._outbox.append(request)
        self._wake.set()
        try:
            return await answer
        finally:
            self._pending.pop(request.id, None)

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Started when a fork server is connected and everything it knows is known here."""
        try:
            stream, codec = await self._connect()
            task_status.started()
            while True:
                async with stream, anyio.create_task_group() as group:
                    group.start_soon(self._send, stream)
                    await self._receive(stream, codec)
                    group.cancel_scope.cancel()
                log.warning("the fork server is gone; another is started")
                stream, codec = await self._connect()
        finally:
            self._closed = True
            for _, answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(_closed())

    async def _connect(self) -> tuple[SocketStream, wire.Codec[Report]]:
        for _ in range(TRIES):
            try:
                with short_name(str(self._files.socket)) as name:
                    stream = await anyio.connect_unix(name)
            except OSError:
                await self._launch()
                continue
            codec = wire.reports()
            try:
                # The first thing to be heard is everything, in as many pieces as it takes.
                while not self._hear(codec, await stream.receive()):
                    continue
            except _BROKEN:
                await stream.aclose()
                continue
            except BaseException:
                await anyio.aclose_forcefully(stream)
                raise
            first = self._first()
            self._outbox = [*filter(None, [first]), *(request for request, _ in self._pending.values())]
            self._wake.set()
            return stream, codec
        raise Terminal(
            "runtime.forkserver", "The fork server does not stay up.", hint=f"read {self._files.own_log}"
        )

    async def _launch(self) -> None:
        self._files.make()
        logs.trim(str(self._files.own_log), OWN_LOG_BYTES_MAX)
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with self._files.own_log.open("ab") as out, anyio.move_on_after(LAUNCH_S_MAX):
            done = await anyio.run_process(
                [sys.executable, "-P", "-m", _MODULE, str(self._files.root)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                check=False,
                env=surroundings.BASE | passed_on,
                start_new_session=True,
            )
            if done.returncode != 0:
                raise Terminal(
                    "runtime.forkserver", "The fork server did not start.", hint=f"read {self._files.own_log}"
                )

    async def _send(self, stream: SocketStream) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            requests, self._outbox = self._outbox, []
            if requests:
                try:
                    await stream.send(wire.frame(requests))
                except _BROKEN:
                    # The receiving half sees the same, and these are still pending.
                    return

    async def _receive(self, stream: SocketStream, codec: wire.Codec[Report]) -> None:
        while True:
            try:
                data = await stream.receive()
            except _BROKEN:
                return
            self._hear(codec, data)

    def _hear(self, codec: wire.Codec[Report], data: bytes) -> bool:
        """Whether there was anything whole in it."""
        heard = False
        for report in codec.feed(data):
            heard = True
            match report:
                case Done(id_, refusal):
                    _, answer = self._pending.get(id_, (None, None))
                    if answer is not None and not answer.done():
                        answer.set_result(refusal)
                case Told(states):
                    self._told(states)
                case _:
                    raise Conflict(
                        "runtime.replaced",
                        "Another worker process has taken over the fork server.",
                        hint="run one worker for each directory",
                    )
        return heard


def _closed() -> Retry:
    return Retry("runtime.closed", "The runtime is closed.", hint="open it again; what runs goes on")
