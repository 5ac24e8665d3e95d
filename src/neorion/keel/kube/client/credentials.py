"""Who we are to the server, kept fresh: tokens and certificates from files, credentials from plugins."""

import asyncio
import ssl

from msgspec import Struct

from neorion.keel.base import Error, Instant, Invalid
from neorion.keel.clock import Clock
from neorion.keel.kube.client.cluster_config import (
    ClientCertificate,
    ClusterConfig,
    ExecPlugin,
    StaticToken,
    TokenFile,
)
from neorion.keel.kube.client.tls_material import FILE_FRESH_S, TlsMaterial

# A credential is not used in its last seconds: it would expire on the way.
MARGIN_NS = 10 * 1_000_000_000


class RequestAuth(Struct, frozen=True):
    """What goes with a request: a header, and the TLS it travels in."""

    headers: dict[str, str]
    tls: ssl.SSLContext


class CachedCredential(Struct, frozen=True):
    """A token or a plugin's certificate, and how long it is good for: by the wall clock, by the monotonic one, or for ever."""

    token: str = ""
    certificate: ClientCertificate | None = None
    expires: Instant | None = None
    fresh_until: float | None = None


class Credentials:
    """The current access, fetched when needed, by one caller for all."""

    def __init__(self, cluster: ClusterConfig, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._lock = asyncio.Lock()
        self._papers = TlsMaterial(cluster, clock)
        self._held: CachedCredential | None = None
        self._access: RequestAuth | None = None
        # How fetching failed the last time.
        self._failure: Error | None = None

    async def access(self) -> RequestAuth:
        access = self._good()
        if access is None:
            before = self._failure
            async with self._lock:
                access = self._good()
                # Another caller may have tried while this one waited: for a plugin that hangs all wait once, not each in turn.
                if access is None and self._failure is not None and self._failure is not before:
                    raise self._failure
                access = access or await self._renewed()
        return access

    def refused(self, access: RequestAuth) -> bool:
        """The server did not accept `access`; whether there may be another one."""
        passing = not isinstance(self._cluster.source, StaticToken | None)
        if self._access is access:
            self._papers.invalidate()
            if passing:
                self._held = None
        certificate = self._cluster.certificate
        return passing or (certificate is not None and certificate.files is not None)

    def untrusting(self, access: RequestAuth) -> bool:
        """The authorities in `access` do not know the server; whether there may be others."""
        if self._access is access:
            self._papers.invalidate()
        return self._cluster.trust.file is not None

    def _good(self) -> RequestAuth | None:
        return self._access if self._papers.fresh and self._good_held() is not None else None

    def _good_held(self) -> CachedCredential | None:
        held = self._held
        if held is None:
            return None
        if held.expires is not None and self._clock.now().ns + MARGIN_NS >= held.expires.ns:
            return None
        aged = held.fresh_until is not None and self._clock.monotonic() >= held.fresh_until
        return None if aged else held

    async def _renewed(self) -> RequestAuth:
        if not self._papers.fresh:
            await self._papers.renew()
        try:
            held = self._held = self._good_held() or await self._fetch()
        except Error as error:
            self._failure = error
            raise
        headers = {"Authorization": f"Bearer {held.token}"} if held.token else {}
        access = self._access = RequestAuth(headers, self._papers.tls(held.certificate))
        return access

    async def _fetch(self) -> CachedCredential:
        match self._cluster.source:
            case None:
                return CachedCredential()
            case StaticToken(text):
                return CachedCredential(text)
            case TokenFile() as source:
                # One that is being written is not the end of the one before, unless the server refused that.
                text = await _token(source) or (self._held.token if self._held is not None else "")
                if not text:
                    raise _no_token(source)
                return CachedCredential(text, fresh_until=self._clock.monotonic() + FILE_FRESH_S)
            case ExecPlugin() as plugin:
                from neorion.keel.kube.client.exec_plugin import run_plugin  # noqa: PLC0415 -- many have none

                made = await run_plugin(plugin)
                return CachedCredential(made.token, made.certificate, made.expires)


async def _token(source: TokenFile) -> str:
    import anyio  # noqa: PLC0415 -- as above

    try:
        return (await anyio.Path(source.path).read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _no_token(source: TokenFile) -> Invalid:
    return Invalid(
        "kube.token_file",
        f"The token file {source.path} cannot be read or is empty.",
        hint="Check who renews it.",
    )
