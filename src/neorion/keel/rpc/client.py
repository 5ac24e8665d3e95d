"""The calling side: a channel to one address, from which generated clients are made.

    async with connect("controller:7000", ids=SystemIds(), token=token) as channel:
        pong = await channel.client(EchoClient).say(Ping(text="hello"))

Whatever fails is raised as one of the error families: the server's own error, or one that names the address.
"""

import atexit
import os
import re
import threading
from collections.abc import Awaitable, Mapping
from functools import cache
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeVar

import pyqwest
from connectrpc.client import ConnectClient

from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import Ids
from neorion.keel.rpc.calls import Caller
from neorion.keel.rpc.tls import ClientTls

SomeClient = TypeVar("SomeClient", bound=ConnectClient)

_ADDRESS: Final = re.compile(r"(?:(https?)://)?((?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?)/?")
_PORT_MOST: Final = 65_535
_TIMEOUT: Final = Duration.of(seconds=30)
_CONNECT_S: Final = 10.0
# Idle connections kept for the next call: as many as a busy client has calls in flight.
_IDLE_MOST: Final = 64
# And how long: over the half minute between two heartbeats, and less than servers keep them, so that nobody sends into one that is just being closed.
IDLE_S: Final = 40.0
# Far more than such a step takes; at the end of a process nobody notices it.
_LAST_STEP_S: Final = 0.05
# A server that answers more than this to one call is broken or not ours.
_ANSWER_BYTES_MOST: Final = 64 * 2**20
# What no proxy is asked for. The star alone would leave out addresses that are numbers.
_HERE: Final = "localhost,127.0.0.0/8,::1"
_EVERYWHERE: Final = "*,0.0.0.0/0,::/0"
_SCHEMES: Final[tuple[Literal["http", "https"], ...]] = ("http", "https")


class Transport(Protocol):
    """Carries one HTTP request: over sockets, or in memory under a simulator."""

    def execute(self, request: pyqwest.Request) -> Awaitable[pyqwest.Response]: ...


class Channel:
    """What generated clients need to reach one server."""

    def __init__(self, address: str, transport: Transport, caller: Caller) -> None:
        self.address = address
        self._transport = transport
        self._http = pyqwest.Client(transport)
        self._caller = caller

    def client(self, kind: type[SomeClient]) -> SomeClient:
        return kind(
            self.address,
            interceptors=[self._caller],
            http_client=self._http,
            # Our messages are small and our links are fast: compressing costs more than it saves.
            send_compression=None,
            accept_compression=(),
            read_max_bytes=_ANSWER_BYTES_MOST,
        )

    def show(self, token: str | None) -> None:
        """From now on calls carry this token; None is the one that the channel was made with."""
        self._caller.show(token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(self._transport, pyqwest.HTTPTransport):
            await self._transport.aclose()

    def __repr__(self) -> str:
        return f"Channel({self.address!r})"


def connect(
    address: str,
    *,
    ids: Ids,
    token: str | None = None,
    tls: ClientTls | None = None,
    timeout: Duration = _TIMEOUT,
    transport: Transport | None = None,
) -> Channel:
    """A channel to `address`: "controller:7000", "https://10.0.0.7:7000". Connects at the first call.

    `timeout` bounds unary calls that do not bring their own `timeout_ms`; streams end when they end.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found[3] or 0) > _PORT_MOST:
        raise Invalid(
            "rpc.address",
            f'"{address[:100]}" is no address.',
            hint='Write "host:port" or "https://host:port".',
        )
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise Invalid("rpc.token", "A token is one word of printable ASCII.", hint="Check how it was read.")
    scheme = found[1] or ("http" if tls is None else "https")
    url = f"{scheme}://{found[2]}"
    return Channel(url, transport or sockets(tls), Caller(url, ids, token, timeout))


@cache
def _end_in_peace() -> None:
    """The transport's own threads finish their last step a moment after the answer.

    One that does so while the interpreter is being taken apart aborts the process, so its end waits for them.
    """
    atexit.register(threading.Event().wait, _LAST_STEP_S)


def sockets(tls: ClientTls | None = None, *, direct: bool = False) -> pyqwest.HTTPTransport:
    """What carries requests over the network; also for plain HTTP to servers of others. Close it with `aclose`.

    With `direct` past every proxy, for what is a machine's own, as its cloud's notices are.
    """
    _end_in_peace()
    files = tls or ClientTls()
    try:
        ca, cert, key = (file and file.read_bytes() for file in (files.ca, files.cert, files.key))
    except OSError as error:
        raise Invalid(
            "rpc.no_such_file",
            f"Cannot read {error.filename}: {error.strerror}.",
            hint="Name the PEM file for TLS.",
        ) from None
    try:
        return _transport(ca, cert, key, _proxies(os.environ, direct=direct))
    except ValueError:
        raise Invalid(
            "rpc.bad_certificate",
            "The files for TLS hold no certificate and key that fit.",
            hint="Check the PEM files.",
        ) from None


def _proxies(environ: Mapping[str, str], *, direct: bool) -> list[pyqwest.Proxy]:
    """Those that the environment names, as it names them, but never to this machine: left to itself, the library takes them for that too."""

    def said(name: str) -> str:
        return environ.get(name.upper()) or environ.get(name, "")

    words = [word.strip() for word in said("no_proxy").split(",")]
    spared = _EVERYWHERE if direct or "*" in words else ",".join([*words, _HERE])
    try:
        return [
            pyqwest.Proxy(url if "://" in url else f"http://{url}", no_proxy=spared, scheme=scheme)
            for scheme in _SCHEMES
            if (url := said(f"{scheme}_proxy") or said("all_proxy"))
        ]
    except ValueError:
        raise Invalid(
            "rpc.proxy",
            "The environment names a proxy that is no address.",
            hint="Write HTTP_PROXY and HTTPS_PROXY as http://host:3128.",
        ) from None


def _transport(
    ca: bytes | None, cert: bytes | None, key: bytes | None, proxies: list[pyqwest.Proxy]
) -> pyqwest.HTTPTransport:
    return pyqwest.HTTPTransport(
        proxy=proxies,
        tls_ca_cert=ca,
        tls_include_system_certs=ca is None,
        tls_cert=cert,
        tls_key=key,
        connect_timeout=_CONNECT_S,
        pool_max_idle_per_host=_IDLE_MOST,
        pool_idle_timeout=IDLE_S,
        # The machine's own rules for names, as every other program here follows them.
        use_system_dns=True,
        # A token goes to the address it was given for and nowhere else.
        follow_redirects=False,
        enable_otel=False,
    )
