"""Who we are to the server, kept fresh: tokens from files, credentials from plugins."""

import asyncio
import ssl

from msgspec import Struct

from neorion.keel.base import Instant, Invalid
from neorion.keel.clock import Clock
from neorion.keel.kube.client.cluster import Certificate, Cluster, ExecPlugin, StaticToken, TokenFile
from neorion.keel.kube.client.tls import tls_context

# The kubelet renews a pod's token long before it ends; a file is read again after this long, or when the server refuses.
FILE_FRESH_S = 60.0
# A credential is not used in its last seconds: it would expire on the way.
MARGIN_NS = 10 * 1_000_000_000


class Access(Struct, frozen=True):
    """What goes with a request: a header, and the TLS it travels in."""

    headers: dict[str, str]
    tls: ssl.SSLContext


class Held(Struct, frozen=True):
    """An access and how long it is good for: by the wall clock, by the monotonic one, or for ever."""

    access: Access
    expires: Instant | None = None
    fresh_until: float | None = None


class Credentials:
    """The current access, fetched when needed, by one caller for all."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._lock = asyncio.Lock()
        self._held: Held | None = None
        self._tls: dict[Certificate | None, ssl.SSLContext] = {}

    async def access(self) -> Access:
        held = self._held
        if held is None or not self._good(held):
            async with self._lock:
                # Another caller may have fetched while this one waited.
                held = self._held
                if held is None or not self._good(held):
                    held = self._held = await self._fetch()
        return held.access

    def refused(self, access: Access) -> bool:
        """The server did not accept `access`; whether there may be another one."""
        if isinstance(self._cluster.source, StaticToken | None):
            return False
        if self._held is not None and self._held.access is access:
            self._held = None
        return True

    def _good(self, held: Held) -> bool:
        if held.expires is not None and self._clock.now().ns + MARGIN_NS >= held.expires.ns:
            return False
        return held.fresh_until is None or self._clock.monotonic() < held.fresh_until

    async def _fetch(self) -> Held:
        match self._cluster.source:
            case None:
                return Held(self._with(""))
            case StaticToken(text):
                return Held(self._with(text))
            case TokenFile() as source:
                text = await _token(source)
                return Held(self._with(text), fresh_until=self._clock.monotonic() + FILE_FRESH_S)
            case ExecPlugin() as plugin:
                from neorion.keel.kube.client.exec_plugin import run_plugin  # noqa: PLC0415 -- many have none

                made = await run_plugin(plugin)
                return Held(self._with(made.token, made.certificate), made.expires)

    def _with(self, token: str, certificate: Certificate | None = None) -> Access:
        certificate = certificate or self._cluster.certificate
        if certificate not in self._tls:
            # Only the newest: connections of an expired certificate are not used again.
            self._tls = {certificate: tls_context(self._cluster.trust, certificate)}
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return Access(headers, self._tls[certificate])


async def _token(source: TokenFile) -> str:
    import anyio  # noqa: PLC0415 -- as above

    try:
        text = (await anyio.Path(source.path).read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text:
        raise Invalid(
            "kube.token_file",
            f"The token file {source.path} cannot be read or is empty.",
            hint="Check who renews it.",
        )
    return text
