"""The client side: a channel to one address, from which generated clients are made.

    async with connect("controller:7000", ids=SystemIds(), token=token) as channel:
        pong = await channel.client(EchoClient).say(Ping(text="hello"))

Every failure is raised as one of the error families: the server's own error, or one that names the address.
"""

import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import Ids
from neorion.keel.http.client import HttpTransport, Transport
from neorion.keel.http.proxies import proxy_from
from neorion.keel.rpc.connect_client import ConnectCaller
from neorion.keel.rpc.failover import FailoverCaller
from neorion.keel.rpc.pin import PinnedToken, pinned_context
from neorion.keel.rpc.port import Caller
from neorion.keel.rpc.tls import ClientTls

SomeClient = TypeVar("SomeClient")

_ADDRESS: Final = re.compile(r"(?:(https?)://)?((?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?)/?")
# With or without a user and a password before the host.
_PROXY: Final = re.compile(r"https?://(?:[^@/]*@)?(?:\[[0-9a-fA-F:.]+\]|[^@/:\[\]]+)(?::[0-9]{1,5})?/?")
_PORT_MOST: Final = 65_535
_TIMEOUT: Final = Duration.of(seconds=30)


class Channel:
    """A channel: generated clients use it to reach one service. Its servers, if there are several, share a key and tokens."""

    def __init__(
        self, address: str, caller: Caller, transports: Sequence[Transport] = (), pin: str = ""
    ) -> None:
        """`pin` is the servers', if it is known. The transports are closed with the channel."""
        self.address = address
        self._pin = pin
        self._transports = transports
        self._caller = caller

    def client(self, kind: Callable[[Caller], SomeClient]) -> SomeClient:
        return kind(self._caller)

    def show(self, token: str | None) -> None:
        """Sets the token of later calls; None restores the one that the channel was created with."""
        self._caller.show(token)

    def pinned(self, token: str) -> str:
        """Returns the token with this server's pin, for another client of the same server."""
        return str(PinnedToken(self._pin, token))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transport in self._transports:
            if isinstance(transport, HttpTransport):
                await transport.aclose()

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
    """Creates a channel to `address`: "controller:7000", "https://10.0.0.7:7000". Connects at the first call.

    Several addresses, with a comma between two, are servers of which one leads: a call that fails is followed by calls
    to the next one.

    A token with a pin is for the server of that pin: the channel uses TLS whatever the scheme is, and sends
    nothing to any other server.

    `timeout` limits unary calls without their own `timeout_ms`; streams have no limit.
    """
    pin, token = PinnedToken.parse(token)
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise Invalid("rpc.token", "A token is one word of printable ASCII.", hint="Check how it was read.")
    usual = "http" if tls is None else "https"
    urls = [_url(one, "https" if pin else "", usual) for one in address.split(",")]
    transports = [transport or http_transport(url, tls, pin=pin) for url in urls]
    callers = [
        ConnectCaller(transport, url, ids, token, timeout)
        for transport, url in zip(transports, urls, strict=True)
    ]
    caller = callers[0] if len(callers) == 1 else FailoverCaller(callers)
    return Channel(",".join(urls), caller, transports, pin)


def _url(address: str, scheme: str, usual: str) -> str:
    """The address with `scheme`; without one, with its own or the usual one."""
    found = _ADDRESS.fullmatch(address.strip(" "))
    if found is None or int(found[3] or 0) > _PORT_MOST:
        raise Invalid(
            "rpc.address",
            f'"{address[:100]}" is not a valid address.',
            hint='Write "host:port" or "https://host:port"; several with a comma between two.',
        )
    return f"{scheme or found[1] or usual}://{found[2]}"


def http_transport(
    server: str, tls: ClientTls | None = None, *, direct: bool = False, pin: str = ""
) -> HttpTransport:
    """Creates connections to a server, also for plain HTTP to other services. Close it with `aclose`.

    `direct` ignores proxies, for services on the machine itself, e.g. the metadata service of its cloud. `pin` is the
    pin of the server's certificate.
    """
    proxy = "" if direct else _proxy(os.environ, server)
    secure = server.startswith("https:")
    # Named files are checked at once, even if the server does not use TLS.
    context = tls_context(tls or ClientTls()) if tls or (secure and not pin) else None
    return HttpTransport(server, pinned_context(pin, context) if pin else context, proxy)


def tls_context(files: ClientTls) -> ssl.SSLContext:
    """A TLS context with the files' authority, or with those of the system."""
    for file in (files.ca, files.cert, files.key):
        _check_readable(file)
    try:
        context = ssl.create_default_context(cafile=files.ca)
        if files.cert is not None:
            # A key with a passphrase is refused: OpenSSL would prompt for it on the terminal.
            context.load_cert_chain(files.cert, files.key, password="")
    except (ssl.SSLError, ValueError):
        raise Invalid(
            "rpc.bad_certificate",
            "The files for TLS hold no certificate and key that fit.",
            hint="Check the PEM files.",
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 requires extensions that many private authorities omit.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _check_readable(file: Path | None) -> None:
    try:
        if file is not None:
            file.open("rb").close()
    except OSError as error:
        raise Invalid(
            "rpc.no_such_file",
            f"Cannot read {error.filename}: {error.strerror}.",
            hint="Name the PEM file for TLS.",
        ) from None


def _proxy(environ: Mapping[str, str], server: str) -> str:
    """The proxy of the environment for a server. Servers on this machine have none."""
    proxy = proxy_from(environ, server, fallback="all_proxy")
    if proxy and not _PROXY.fullmatch(proxy):
        raise Invalid(
            "rpc.proxy",
            "The environment names a proxy whose address is not valid.",
            hint="Write HTTP_PROXY and HTTPS_PROXY as http://host:3128.",
        )
    return proxy
