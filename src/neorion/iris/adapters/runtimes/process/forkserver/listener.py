"""Listener for the worker: one connection at a time, the newest one."""

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
# Above this, requests of a worker that does not read its replies are not read.
UNSENT_BYTES_MAX = 4 << 20
# Pending connections: there is one worker, or two during a restart.
_BACKLOG = 8


class WorkerListener:
    """Server of one connection, which keeps all changes that a slow worker was not sent yet.

    Changes are a set of attempts, not a queue. However slow the worker is, their number is bounded by the number of
    attempts, and the worker gets current states, not old ones.
    """

    def __init__(
        self,
        path: Path,
        loop: SelectorLoop,
        states: Callable[[], Iterable[AttemptReport]],
        handle: Callable[[Request], Report],
    ) -> None:
        self._loop = loop
        self._states = states
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

    def report(self, state: AttemptReport) -> None:
        if self._worker is not None:
            self._changed[state.attempt] = state

    def flush(self) -> None:
        """Sends all replies and changes of this turn in one frame."""
        if self._worker is None:
            return
        if not self._unsent:
            messages = self._reports
            if self._changed:
                # Replies first, so that an attempt is accepted before its end is reported.
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
        self._reports = [StatusUpdate(list(self._states()))]
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
