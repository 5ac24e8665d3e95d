"""Where the worker comes in: one connection at a time, the newest one."""

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from neorion.iris.adapters.runtimes.process import protocol
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import SelectorLoop
from neorion.iris.adapters.runtimes.process.protocol import (
    AttemptReport,
    ConnectionReplaced,
    Report,
    Request,
    StatusUpdate,
)
from neorion.iris.adapters.runtimes.process.socket_path import short_name
from neorion.keel.telemetry import logger

log = logger(__name__)

_READ_BYTES = 1 << 18
# A worker that does not read its answers is not listened to until it has.
UNSENT_BYTES_MAX = 4 << 20
# How many workers may knock at once; there is one, and during a restart two.
_BACKLOG = 8


class WorkerListener:
    """Reads requests, sends reports, and forgets nothing that a slow worker has not yet been told.

    Changes are kept as a set of attempts, not as a queue: however slow the worker, what waits for it is bounded by what
    there is, and it is told how things are, not how they were.
    """

    def __init__(
        self,
        path: Path,
        loop: SelectorLoop,
        everything: Callable[[], Iterable[AttemptReport]],
        handle: Callable[[Request], Report],
    ) -> None:
        self._loop = loop
        self._everything = everything
        self._handle = handle
        self._changed: dict[str, AttemptReport] = {}
        self._reports: list[Report] = []
        self._unsent = bytearray()
        self._codec = protocol.requests()
        self._worker: socket.socket | None = None
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        with short_name(str(path)) as name:
            self._listener.bind(name)
        path.chmod(0o600)
        self._listener.listen(_BACKLOG)
        loop.watch(self._listener.fileno(), self._accept)

    @property
    def open(self) -> bool:
        return self._worker is not None

    def tell(self, state: AttemptReport) -> None:
        if self._worker is not None:
            self._changed[state.attempt] = state

    def flush(self) -> None:
        """Once per turn: everything that came up goes out in one frame."""
        if self._worker is None:
            return
        if not self._unsent:
            messages = self._reports
            if self._changed:
                # Answers first: an attempt that is told to have ended was certainly accepted.
                messages = [*messages, StatusUpdate(list(self._changed.values()))]
            if messages:
                self._unsent += protocol.frame(messages)
                self._reports = []
                self._changed.clear()
        if self._unsent:
            self._send(self._worker)

    def _accept(self) -> None:
        try:
            worker, _ = self._listener.accept()
        except OSError:
            return
        worker.setblocking(False)
        if self._worker is not None:
            with suppress(OSError):
                self._worker.send(protocol.frame([ConnectionReplaced()]))
            self._close()
        self._worker = worker
        self._codec = protocol.requests()
        self._reports = [StatusUpdate(list(self._everything()))]
        self._loop.watch(worker.fileno(), lambda: self._read(worker))

    def _read(self, worker: socket.socket) -> None:
        if len(self._unsent) > UNSENT_BYTES_MAX:
            return
        try:
            data = worker.recv(_READ_BYTES)
            if not data:
                self._close()
                return
            for request in self._codec.feed(data):
                self._reports.append(self._handle(request))
        except BlockingIOError:
            return
        except (OSError, protocol.FrameTooLong, msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("the worker's connection is closed", why=repr(error))
            self._close()

    def _send(self, worker: socket.socket) -> None:
        try:
            sent = worker.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close()
            return
        del self._unsent[:sent]
        self._loop.want(worker.fileno(), read=len(self._unsent) <= UNSENT_BYTES_MAX, write=bool(self._unsent))

    def _close(self) -> None:
        assert self._worker is not None  # noqa: S101 -- closed once
        self._loop.unwatch(self._worker.fileno())
        self._worker.close()
        self._worker = None
        self._unsent.clear()
        self._changed.clear()
        self._reports = []
