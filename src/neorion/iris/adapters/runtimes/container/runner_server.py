"""Where runners find their worker: one TLS port whose key their tokens are pinned to."""

import hashlib
import hmac
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import msgspec
from anyio.abc import ByteStream, SocketAttribute
from anyio.streams.tls import TLSListener

from neorion.iris.adapters.runtimes.container.messages import (
    PART_BYTES,
    FromRunner,
    Hello,
    Rejected,
    Sender,
    from_runner,
)
from neorion.iris.adapters.runtimes.process.protocol import FrameTooLong
from neorion.iris.model import AttemptId
from neorion.keel.base import Duration, Retry
from neorion.keel.clock import SystemIds
from neorion.keel.config import SecretFile
from neorion.keel.rpc.own_certificate import pin_of, self_signed
from neorion.keel.rpc.pin import PinnedToken
from neorion.keel.telemetry import logger

log = logger(__name__)

# A runner sends something every second. One that says nothing for so long is gone, or its network is.
SILENCE: Final = Duration.of(seconds=10)
# Strangers cannot make this process keep more than this: no token was shown yet.
_HELLO_BYTES_MAX: Final = 4096
_BROKEN: Final = (
    OSError,
    TimeoutError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    FrameTooLong,
    msgspec.DecodeError,
)

Session = Callable[[AttemptId, Hello, AsyncGenerator[FromRunner, None], Sender], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RunnerAddress:
    """Where to listen for runners, and the name or address by which they reach this machine."""

    listen: str = "127.0.0.1"
    host: str = "127.0.0.1"


class RunnerServer:
    """Keeps its port and its key in a folder, so that runners find the next life of the worker too."""

    def __init__(self, folder: Path, address: RunnerAddress, session: Session) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._tls = self_signed(folder)
        self._pin = pin_of(self._tls)
        self._key = SecretFile(folder / "runner.key", SystemIds()).value.encode()
        self._port_file = folder / "port"
        self._address = address
        self._session = session
        self.port = 0

    @property
    def address(self) -> str:
        return f"{self._address.host}:{self.port}"

    def token(self, attempt: AttemptId) -> str:
        """Returns the token of this attempt's runner, and of no other."""
        return str(PinnedToken(self._pin, self._token(attempt)))

    async def serve(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self._tls.cert, self._tls.key)
        listener = await self._listen()
        async with TLSListener(listener, context, standard_compatible=False) as secure:
            task_status.started()
            await secure.serve(self._welcome)

    async def _listen(self) -> anyio.abc.Listener[anyio.abc.SocketStream]:
        """The port of the last life, where it is still free."""
        kept = int(self._port_file.read_text()) if self._port_file.exists() else 0
        try:
            listener = await anyio.create_tcp_listener(
                local_host=self._address.listen, local_port=kept, reuse_port=False
            )
        except OSError as error:
            raise Retry(
                "runtime.runner_port",
                f"The port {kept} for runners cannot be opened: {error.strerror}.",
                hint="End the program that uses it.",
            ) from None
        (one,) = listener.listeners
        self.port = one.extra(SocketAttribute.local_port)  # noqa: S610 -- of anyio, not of Django
        self._port_file.write_text(str(self.port))
        return one

    async def _welcome(self, stream: ByteStream) -> None:
        sender = Sender(stream)
        try:
            async with aclosing(_messages(stream)) as messages:
                hello = await anext(messages)
                if not isinstance(hello, Hello):
                    return
                attempt = AttemptId(hello.attempt)
                if not hmac.compare_digest(hello.token, self._token(attempt)):
                    await sender.send(Rejected("The token is not the one of this attempt."))
                    return
                await self._session(attempt, hello, messages, sender)
        except _BROKEN as error:
            log.debug("a runner's connection ended", why=repr(error))
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await sender.close()

    def _token(self, attempt: AttemptId) -> str:
        return hmac.new(self._key, attempt.encode(), hashlib.sha256).hexdigest()


async def _messages(stream: ByteStream) -> AsyncGenerator[FromRunner, None]:
    codec = from_runner()
    most = _HELLO_BYTES_MAX
    while True:
        with anyio.fail_after(SILENCE.seconds):
            data = await stream.receive(most)
        for message in codec.feed(data):
            yield message
            most = PART_BYTES
        if most < PART_BYTES and len(data) == most:
            raise FrameTooLong
