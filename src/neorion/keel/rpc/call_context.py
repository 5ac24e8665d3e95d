"""One request while it is served: who asks, until when, and how it is cut short."""

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

NOBODY: Final = Principal("anyone", frozenset({ANYONE}))

# A loop may run a timer a little before its time.
_TIMER_EARLY_S: Final = 0.001
_DEALT_WITH: Final = (b"authorization", b"connect-timeout-ms", b"x-correlation-id", b"content-length")
# Of a body that is too large, so much is read and thrown away: a mistake is answered, an attack is not waited for.
_DISCARDED_BYTES_MAX: Final = 64 * 1024 * 1024
# The largest body in the smallest packets of a link. Each part costs time, however small it is.
_PARTS_MAX: Final = 16_384
# Who has not sent anything for so long is waiting for us.
_SENDING_S: Final = 1.0
# Nearly every request is answered within it; what only concerns the others is begun after it.
_MOMENT_S: Final = 0.1
# What may stand in a log line and in a header.
_CORRELATION: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")

_current: ContextVar["CallContext"] = ContextVar("neorion_rpc_exchange")


def caller() -> Principal:
    """Who called the handler that asks."""
    return _current.get().principal


def current() -> "CallContext":
    return _current.get()


def remaining() -> Duration:
    """How long the handler that asks may still take. A long poll answers a little before."""
    return _current.get().remaining()


class RequestId(Id):
    """Made for a request that brought no correlation id of its own."""

    __slots__ = ()
    prefix = "req"


class CallContext:
    """A request and the state of its answer.

    `cut` ends it from outside with a typed error: the handler is cancelled, and whoever writes the answer finds the
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
        self.principal = NOBODY
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
        # The request's own task ends with it, so nobody has to take the value back.
        _current.set(self)

    @property
    def source(self) -> str:
        """The caller's address without its port."""
        client = self.scope.get("client")
        return str(client[0]) if client else "this process"

    def within(self, span: float, body_span: float) -> None:
        """Starts the clock: the body within `body_span` seconds, the answer within `span`."""
        now = self._loop.time()
        self._deadline = now + span
        self._body_due = now + body_span
        # One timer serves all; it is set anew only for a request that is still there after a moment, as few are.
        self._timer = self._loop.call_at(now + min(span, body_span, _MOMENT_S), self._on_time)

    def remaining(self) -> Duration:
        return Duration.of(seconds=max(0.0, self._deadline - self._loop.time()))

    def cut(self, error: Error) -> None:
        if self.verdict is None and self._task is not None:
            self.verdict = error
            self._task.cancel()

    def settle(self) -> None:
        """Takes the cancellation of `cut` back, so that the answer can still be written."""
        if self._task is not None:
            self._task.uncancel()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        # The task's context leads back here: without this every request would be left to the garbage collector.
        self._task = self._timer = self._watcher = None

    def watch(self) -> None:
        """From here on a client that goes away ends the handler, if that takes longer than a moment."""
        self._watched = True

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cut(_gone())

    def skip_body(self) -> bytes:
        """Nothing is read, whatever the caller has announced."""
        self._body = b""
        return self._body

    async def read_body(self, most: int) -> bytes:
        """The whole body; the messages are small by rule, so that nothing is handled half read."""
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
        """Reads on for a while: a client that is still sending would find the connection broken instead of our answer."""
        left = _DISCARDED_BYTES_MAX
        with anyio.CancelScope() as listening:
            while left > 0:
                listening.deadline = anyio.current_time() + _SENDING_S
                message = await self._receive()
                if not message.get("more_body", False):
                    return
                left -= len(message["body"])

    def strip(self) -> None:
        """Takes away the headers that were dealt with: no handler sees a token, and the deadline has one clock."""
        headers = self.headers.copy()
        for name in _DEALT_WITH:
            headers.pop(name, None)
        self.scope["headers"] = list(headers.items())

    async def receive(self) -> Message:
        """The body once more, for who reads it by ASGI, then whatever the server still has to say."""
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
                    hint="Whether it was done is unknown: look before trying again, or give it more time.",
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
