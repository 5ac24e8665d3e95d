"""Opens connections to a server: its address, the proxy in front of it, and TLS."""

import asyncio
import socket
import ssl
import sys
from base64 import b64encode
from urllib.parse import SplitResult, unquote, urlsplit

from neorion.keel.base import Invalid
from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.http.message import ProtocolError, ResponseParser, write_head

CONNECT_S_MAX = 10.0
# After 30 s of silence the kernel probes the peer, and closes the connection half a minute later. A watch on a dead
# machine ends this way. Application pings would not work, because they stay unanswered while output waits to be read.
_SILENCE = socket.TCP_KEEPALIVE if sys.platform == "darwin" else socket.TCP_KEEPIDLE
KEEPALIVE = ((_SILENCE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))
# The kernel probes only idle connections. One with unacknowledged bytes is closed after this time too; otherwise a
# stalled stream would stay open for a quarter of an hour.
UNHEARD_MS = 60_000
# The delay before the next address is tried in parallel (RFC 8305).
NEXT_ADDRESS_S = 0.25


class DialError(Exception):
    """No connection could be opened."""


class Dialer:
    """Opens connections to one server. `prefix` and `headers` adapt its requests for a proxy."""

    def __init__(self, server: str, proxy: str = "", server_name: str = "") -> None:
        self._server = _split(server, "server", "https://host:6443")
        self._proxy = _split(proxy, "proxy", "http://host:3128") if proxy else None
        self._name = server_name or self._server.hostname or ""
        self._secure = self._server.scheme == "https"
        self.host = self._server.netloc.rpartition("@")[2]
        self.prefix = self._server.path.rstrip("/")
        self.headers: list[tuple[str, str]] = [("Host", self.host)]
        if self._proxy is not None and not self._secure:
            self.prefix = f"http://{self.host}{self.prefix}"
            self.headers += _proxy_login(self._proxy)

    async def dial(self, tls: ssl.SSLContext | None) -> BoundedStream:
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                if self._proxy is None:
                    return await _link(self._server, tls if self._secure else None, self._name)
                return await self._through(self._proxy, tls)
        except TimeoutError:
            raise DialError(f"{self._proxy_prefix}no connection in time") from None
        except ssl.SSLCertVerificationError:
            raise
        except OSError as error:
            raise DialError(f"{self._proxy_prefix}{error.strerror or error}") from error

    @property
    def _proxy_prefix(self) -> str:
        proxy = self._proxy
        return f"through the proxy {_bracketed(proxy)}:{_port(proxy)}, " if proxy is not None else ""

    async def _through(self, proxy: SplitResult, tls: ssl.SSLContext | None) -> BoundedStream:
        context = ssl.create_default_context() if proxy.scheme == "https" else None
        link = await _link(proxy, context, proxy.hostname or "")
        if not self._secure or tls is None:
            return link
        try:
            await self._let_through(link, proxy)
            await link.start_tls(tls, self._name)
        except BaseException:
            link.close()
            raise
        return link

    async def _let_through(self, link: BoundedStream, proxy: SplitResult) -> None:
        target = f"{_bracketed(self._server)}:{_port(self._server)}"
        link.write(write_head("CONNECT", target, [("Host", target), *_proxy_login(proxy)]))
        head = await link.head(ResponseParser())
        if head.status != 200:
            raise ProtocolError(f"the proxy says {head.status} {head.reason}")


async def _link(place: SplitResult, tls: ssl.SSLContext | None, name: str) -> BoundedStream:
    loop = asyncio.get_running_loop()
    made = await _socket(loop, place.hostname or "", _port(place))
    link = BoundedStream()
    try:
        for option, value in KEEPALIVE:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
        if sys.platform == "linux":
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_MS)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await loop.create_connection(
            lambda: link, sock=made, ssl=tls, server_hostname=name if tls is not None else None
        )
    except BaseException:
        # Close the transport before the socket: a transport after a handshake writes to its socket, whose number is
        # soon reused.
        link.close()
        made.close()
        raise
    return link


async def _socket(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    try:
        # A numeric address needs no resolver, nor the thread that waits for one.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if len(found) > 1:
        import aiohappyeyeballs  # noqa: PLC0415 -- most servers have one address

        return await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType] -- its addresses have no types
            found, happy_eyeballs_delay=NEXT_ADDRESS_S, loop=loop
        )
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        await loop.sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


def _split(address: str, what: str, example: str) -> SplitResult:
    try:
        found = urlsplit(address)
        good = found.scheme in {"http", "https"} and bool(found.hostname) and found.port != 0
    except ValueError:
        good = False
    if not good:
        raise Invalid(
            "http.address",
            # Without the password that may come before the host.
            f'"{address.rpartition("@")[2]}" is not a valid address of a {what}.',
            hint=f"Write one such as {example}.",
        )
    return urlsplit(address)


def _port(place: SplitResult) -> int:
    return place.port or (443 if place.scheme == "https" else 80)


def _bracketed(place: SplitResult) -> str:
    host = place.hostname or ""
    return f"[{host}]" if ":" in host else host


def _proxy_login(proxy: SplitResult) -> list[tuple[str, str]]:
    if not proxy.username:
        return []
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return [("Proxy-Authorization", f"Basic {b64encode(login.encode()).decode()}")]
