"""The state of one request: its caller, deadline and cancellation."""

import asyncio
import re
from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Final

import anyio

from neorion.keel.base import Deadline, Duration, Error, Id, Invalid, Retry
from neorion.keel.clock import Ids
from neorion.keel.rpc.asgi import Message, Receive, Scope, Send
from neorion.keel.rpc.auth import ANYONE, Principal
from neorion.keel.run.background import create_owned_task

ANONYMOUS: Final = Principal("anyone", frozenset({ANYONE}))

# A loop may run a timer slightly early.
_TIMER_EARLY_S: Final = 0.001
_DEALT_WITH: Final = (b"authorization", b"connect-timeout-ms", b"x-correlation-id", b"content-length")
# The bytes of an oversized body that are read and dropped, so that the client gets the error. Longer bodies are cut.
_DISCARDED_BYTES_MAX: Final = 64 * 1024 * 1024
# The largest body in the smallest packets of a link. Each part costs time, however small it is.
_PARTS_MAX: Final = 16_384
# A client that has sent nothing for this long waits for the response.
_SENDING_S: Final = 1.0
# Nearly all requests end within this time; work that only concerns the others starts after it.
_MOMENT_S: Final = 0.1
# Characters that are safe in a log line and in a header.
_CORRELATION: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")

_current: ContextVar["CallContext"] = ContextVar("neorion_rpc_exchange")


def caller() -> Principal:
    """The caller of the current handler."""
    return _current.get().principal


def current() -> "CallContext":
    return _current.get()


def remaining() -> Duration:
    """The time left for the current handler. A long poll should respond a little earlier."""
    return _current.get().remaining()


class RequestId(Id):
    """A correlation id for a request without one."""

    __slots__ = ()
    prefix = "req"


class CallContext:
    """A request and the state of its response.

    `cut` ends it from outside with a typed error: the handler is cancelled, and the writer of the response finds the
    error in `verdict`.
    """

    __slots__ = (
        "_body",
        "_body_due",
        "_deadline",
        "_loop",
        "_receive",
        "_replayed",
        "_send",
        "_task",
        "_timer",
        "_watched",
        "_watcher",
        "correlation_id",
        "headers",
        "principal",
        "scope",
        "started",
        "verdict",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, ids: Ids) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        given = self.headers.get(b"x-correlation-id", b"")
        self.correlation_id = given.decode() if _CORRELATION.fullmatch(given) else ids.new(RequestId)
        self.principal = ANONYMOUS
        self.started = False
        self.verdict: Error | None = None
        self._receive = receive
        self._send = send
        self._body: bytes | None = None
        self._replayed = False
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(self._loop)
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._body_due = 0.0
        self._watched = False
        self._watcher: asyncio.Task[None] | None = None
        # Never reset, because the request's own task and its context end together.
        _current.set(self)

    @property
    def source(self) -> str:
        """The caller's address without its port."""
        client = self.scope.get("client")
        return str(client[0]) if client else "this process"

    def within(self, span: float, body_span: float) -> None:
        """Starts the timers: the body within `body_span` seconds, the response within `span`."""
        now = self._loop.time()
        self._deadline = now + span
        self._body_due = now + body_span
        # One timer serves all. It is set again only for requests that last longer than a moment, which are few.
        self._timer = self._loop.call_at(now + min(span, body_span, _MOMENT_S), self._on_time)

    def remaining(self) -> Duration:
        return Duration.of(seconds=max(0.0, self._deadline - self._loop.time()))

    def cut(self, error: Error) -> None:
        if self.verdict is None and self._task is not None:
            self.verdict = error
            self._task.cancel()

    def settle(self) -> None:
        """Reverts the cancellation of `cut`, so that the response can be written."""
        if self._task is not None:
            self._task.uncancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        # The task's context refers back to this object: without this every request would wait for the garbage
        # collector.
        self._task = self._timer = self._watcher = None

    def watch(self) -> None:
        """Cancels the handler when the client disconnects, from now on and after a moment."""
        self._watched = True

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cut(_gone())

    def skip_body(self) -> bytes:
        """Reads nothing, whatever length the client has announced."""
        self._body = b""
        return self._body

    async def read_body(self, most: int) -> bytes:
        """Reads the whole body. Messages are small by rule, so no handler gets a partial one."""
        declared = self.headers.get(b"content-length", b"0")
        if not declared.isdigit() or len(declared) > 18 or int(declared) > most:
            await self._discard()
            raise _too_large(most)
        message = await self._receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body", False):
            body, message = await self._read_rest(body, most)
        if message["type"] == "http.disconnect":
            raise _gone()
        self._body = body
        return body

    async def _read_rest(self, first: bytes, most: int) -> tuple[bytes, Message]:
        parts, size, more = [first], len(first), True
        message: Message = {}
        while more:
            message = await self._receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > most or len(parts) > _PARTS_MAX:
                await self._discard()
                raise _too_large(most) if size > most else _too_fragmented()
        return b"".join(parts), message

    async def _discard(self) -> None:
        """Reads the rest for a while.

        Otherwise a client that is still sending would see a broken connection and not the error.
        """
        left = _DISCARDED_BYTES_MAX
        with anyio.CancelScope() as listening:
            while left > 0:
                listening.deadline = anyio.current_time() + _SENDING_S
                message = await self._receive()
                if not message.get("more_body", False):
                    return
                left -= len(message["body"])

    def strip(self) -> None:
        """Removes headers that are processed: handlers see no token, and only one deadline applies."""
        headers = self.headers.copy()
        for name in _DEALT_WITH:
            headers.pop(name, None)
        self.scope["headers"] = list(headers.items())

    async def receive(self) -> Message:
        """Replays the body for an ASGI application, then passes on later messages of the server."""
        if not self._replayed:
            self._replayed = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        return await self._receive()

    def send(self, message: Message) -> Awaitable[None]:
        if not self.started:
            self.started = True
            message["headers"].append((b"x-correlation-id", self.correlation_id.encode()))
        return self._send(message)

    async def respond(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        headers.append((b"content-length", b"%d" % len(body)))
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})

    def _on_time(self) -> None:
        now = self._loop.time() + _TIMER_EARLY_S
        if now >= self._deadline:
            self.cut(
                Deadline(
                    "rpc.deadline",
                    "The call took longer than the time given to it.",
                    hint="Check whether it was executed before trying again, or give it more time.",
                )
            )
        elif self._body is None and now >= self._body_due:
            self.cut(Deadline("rpc.slow_body", "The request's body did not arrive in time."))
        else:
            due = self._deadline if self._body is not None else min(self._deadline, self._body_due)
            self._timer = self._loop.call_at(due, self._on_time)
            if self._watched and self._watcher is None:
                self._watcher = create_owned_task(self._until_gone(), "keel.rpc.watch")


def _gone() -> Retry:
    return Retry("rpc.disconnected", "The client went away before its request was complete.")


def _too_fragmented() -> Invalid:
    return Invalid(
        "rpc.too_fragmented",
        f"The request's body comes in more than {_PARTS_MAX} parts.",
        hint="Send larger parts.",
    )


def _too_large(most: int) -> Invalid:
    return Invalid(
        "rpc.too_large", f"The request is larger than {most} bytes.", hint="Send less, or in several calls."
    )
