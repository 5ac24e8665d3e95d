"""Connection of the worker to its fork server, which it starts if necessary. A broken connection is made again."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing

import anyio
from anyio.abc import TaskStatus

from neorion.iris.adapters.runtimes.process import environ, log_files, protocol
from neorion.iris.adapters.runtimes.process.layout import RuntimeLayout
from neorion.iris.adapters.runtimes.process.protocol import (
    AttemptReport,
    Refusal,
    Reply,
    Request,
    StatusUpdate,
)
from neorion.iris.adapters.runtimes.process.socket_path import short_name
from neorion.iris.ports import MACHINE_ENV
from neorion.keel.base import Conflict, Retry, Terminal
from neorion.keel.telemetry import logger

log = logger(__name__)

# A fork server may exit just when the worker connects. More failures in a row have another cause.
TRIES = 3
# Time for the start of the interpreter, and for reaping the processes of an earlier fork server.
LAUNCH_S_MAX = 60
OWN_LOG_BYTES_MAX = 1 << 20
_MODULE = "neorion.iris.adapters.runtimes.process.forkserver"
# Variables for the interpreter's own paths and its machine. The fork server gets no others from the worker.
_PASSED_ON = ("LD_LIBRARY_PATH", "PYTHONPATH", MACHINE_ENV)
_READ_BYTES = 1 << 18


class ForkServerClient:
    """Client that sends requests, several per frame, and matches the replies to them.

    Every request is idempotent, so requests without a reply are sent again on a new connection.
    """

    def __init__(
        self,
        files: RuntimeLayout,
        on_update: Callable[[Sequence[AttemptReport]], None],
        first: Callable[[], Request | None],
    ) -> None:
        """`on_update` is called with changed states. `first` makes the first request to a new fork server."""
        self._files = files
        self._on_update = on_update
        self._first = first
        self._pending: dict[int, tuple[Request, asyncio.Future[Refusal]]] = {}
        self._outbox: list[Request] = []
        self._wake = asyncio.Event()
        self._codec = protocol.reports()
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
        """Runs the connection. It reports as started when it is connected and all states are known."""
        try:
            reader, writer = await self._connect()
            task_status.started()
            while True:
                with closing(writer):
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._send, writer)
                        await self._receive(reader)
                        group.cancel_scope.cancel()
                log.warning("the fork server is gone; another is started")
                reader, writer = await self._connect()
        finally:
            self._closed = True
            for _, answer in self._pending.values():
                if not answer.done():
                    answer.set_exception(_closed())

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for _ in range(TRIES):
            try:
                with short_name(str(self._files.socket)) as name:
                    reader, writer = await asyncio.open_unix_connection(name)
            except OSError:
                await self._launch()
                continue
            self._codec = protocol.reports()
            received = False
            try:
                # The first message contains all states, in as many pieces as it takes.
                while not received and (data := await _read(reader)):
                    received = self._dispatch(data)
            finally:
                if not received:
                    writer.close()
            if received:
                first = self._first()
                self._outbox = [*filter(None, [first]), *(request for request, _ in self._pending.values())]
                self._wake.set()
                return reader, writer
        raise Terminal(
            "runtime.forkserver", "The fork server does not stay up.", hint=f"Read {self._files.own_log}."
        )

    async def _launch(self) -> None:
        self._files.make()
        log_files.trim(str(self._files.own_log), OWN_LOG_BYTES_MAX)
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with self._files.own_log.open("ab") as out, anyio.move_on_after(LAUNCH_S_MAX):
            done = await anyio.run_process(
                [sys.executable, "-P", "-m", _MODULE, str(self._files.root)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                check=False,
                env=environ.BASE | passed_on,
                start_new_session=True,
            )
            if done.returncode != 0:
                raise Terminal(
                    "runtime.forkserver",
                    "The fork server did not start.",
                    hint=f"Read {self._files.own_log}.",
                )

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            requests, self._outbox = self._outbox, []
            if requests:
                writer.write(protocol.frame(requests))
                try:
                    await writer.drain()
                except OSError:
                    # `_receive` also sees the end of the connection, and these requests are still pending.
                    return

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        while data := await _read(reader):
            self._dispatch(data)

    def _dispatch(self, data: bytes) -> bool:
        """Handles the complete messages of the data. True if there was one."""
        received = False
        for report in self._codec.feed(data):
            received = True
            match report:
                case Reply(id_, refusal):
                    _, answer = self._pending.get(id_, (None, None))
                    if answer is not None and not answer.done():
                        answer.set_result(refusal)
                case StatusUpdate(states):
                    self._on_update(states)
                case _:
                    raise Conflict(
                        "runtime.replaced",
                        "Another worker process has taken over the fork server.",
                        hint="Run one worker for each directory.",
                    )
        return received


async def _read(reader: asyncio.StreamReader) -> bytes:
    """Reads data; empty if the connection has ended."""
    try:
        return await reader.read(_READ_BYTES)
    except OSError:
        return b""


def _closed() -> Retry:
    return Retry("runtime.closed", "The runtime is closed.", hint="Open the runtime again.")
