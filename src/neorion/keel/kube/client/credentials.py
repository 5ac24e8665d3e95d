"""Credentials for the server, kept fresh: tokens and certificates from files, or from exec plugins."""

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

# A credential is not used in its last seconds, because it would expire on the way.
MARGIN_NS = 10 * 1_000_000_000


class RequestAuth(Struct, frozen=True):
    """Authentication of one request: a header, and the TLS context for its connection."""

    headers: dict[str, str]
    tls: ssl.SSLContext


class CachedCredential(Struct, frozen=True):
    """A token or a plugin's certificate, with its expiry by the wall clock or by the monotonic clock, if any."""

    token: str = ""
    certificate: ClientCertificate | None = None
    expires: Instant | None = None
    fresh_until: float | None = None


class Credentials:
    """The current authentication. When it expires, one caller renews it for all."""

    def __init__(self, cluster: ClusterConfig, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._lock = asyncio.Lock()
        self._material = TlsMaterial(cluster, clock)
        self._cached: CachedCredential | None = None
        self._access: RequestAuth | None = None
        # The error of the last renewal.
        self._failure: Error | None = None

    async def access(self) -> RequestAuth:
        access = self._valid_access()
        if access is None:
            before = self._failure
            async with self._lock:
                access = self._valid_access()
                # Another caller may have failed while this one waited. All share that failure, so a hanging plugin is
                # waited for once.
                if access is None and self._failure is not None and self._failure is not before:
                    raise self._failure
                access = access or await self._renewed()
        return access

    def refused(self, access: RequestAuth) -> bool:
        """Records that the server rejected `access`; true if another credential may exist."""
        renewable = not isinstance(self._cluster.source, StaticToken | None)
        if self._access is access:
            self._material.invalidate()
            if renewable:
                self._cached = None
        certificate = self._cluster.certificate
        return renewable or (certificate is not None and certificate.files is not None)

    def untrusting(self, access: RequestAuth) -> bool:
        """Records that the authorities in `access` do not match the server; true if their file may have newer ones."""
        if self._access is access:
            self._material.invalidate()
        return self._cluster.trust.file is not None

    def _valid_access(self) -> RequestAuth | None:
        return self._access if self._material.fresh and self._valid_credential() is not None else None

    def _valid_credential(self) -> CachedCredential | None:
        cached = self._cached
        if cached is None:
            return None
        if cached.expires is not None and self._clock.now().ns + MARGIN_NS >= cached.expires.ns:
            return None
        aged = cached.fresh_until is not None and self._clock.monotonic() >= cached.fresh_until
        return None if aged else cached

    async def _renewed(self) -> RequestAuth:
        if not self._material.fresh:
            await self._material.renew()
        try:
            cached = self._cached = self._valid_credential() or await self._fetch()
        except Error as error:
            self._failure = error
            raise
        headers = {"Authorization": f"Bearer {cached.token}"} if cached.token else {}
        access = self._access = RequestAuth(headers, self._material.tls(cached.certificate))
        return access

    async def _fetch(self) -> CachedCredential:
        match self._cluster.source:
            case None:
                return CachedCredential()
            case StaticToken(text):
                return CachedCredential(text)
            case TokenFile() as source:
                # An unreadable file may be in the middle of a write. The previous token is used, unless the server
                # rejected it.
                text = await _token(source) or (self._cached.token if self._cached is not None else "")
                if not text:
                    raise _no_token(source)
                return CachedCredential(text, fresh_until=self._clock.monotonic() + FILE_FRESH_S)
            case ExecPlugin() as plugin:
                from neorion.keel.kube.client.exec_plugin import run_plugin  # noqa: PLC0415 -- many clusters have no plugin

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
        hint="Check the program that renews it.",
    )
