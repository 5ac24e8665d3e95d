"""TLS contexts from the newest authorities, certificate and key in their files."""

import ssl
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from neorion.keel.base import Invalid
from neorion.keel.clock import Clock
from neorion.keel.kube.client.cluster_config import CaBundle, ClientCertificate, ClusterConfig
from neorion.keel.kube.client.tls import tls_context

# Tokens and certificates are renewed long before they expire. A file is read again after this time, or when the server
# rejects its content.
FILE_FRESH_S = 60.0


class TlsMaterial:
    """Keeps one TLS context while its parts are unchanged. Connections with an older context are not reused."""

    def __init__(self, cluster: ClusterConfig, clock: Clock) -> None:
        self._trust = cluster.trust
        self._certificate = cluster.certificate
        self._clock = clock
        self._made: tuple[CaBundle, ClientCertificate | None, ssl.SSLContext] | None = None
        certificate = cluster.certificate
        files = (cluster.trust.file, *(certificate.files or () if certificate is not None else ()))
        self._files = [file for file in files if file is not None]
        # The files were read when the configuration was loaded.
        self._fresh_until = clock.monotonic() + FILE_FRESH_S

    @property
    def fresh(self) -> bool:
        return not self._files or self._clock.monotonic() < self._fresh_until

    def invalidate(self) -> None:
        """Marks the files for reading before the next use, because the server rejected their content."""
        self._fresh_until = self._clock.monotonic()

    async def renew(self) -> None:
        """Reads the files again.

        A half-written file, or a pair that does not match yet, is ignored until the next time.
        """
        import anyio.to_thread  # noqa: PLC0415 -- most commands end before the first renewal

        self._fresh_until = self._clock.monotonic() + FILE_FRESH_S
        try:
            texts = await anyio.to_thread.run_sync(_texts, self._files)
        except (OSError, UnicodeDecodeError):
            return
        if not all(texts.values()):
            # Without authorities the system's would be trusted.
            return
        trust, certificate = self._trust, self._certificate
        if trust.file is not None:
            trust = replace(trust, ca=texts[trust.file])
        if certificate is not None and certificate.files is not None:
            chain, key = certificate.files
            certificate = replace(certificate, chain=texts[chain], key=texts[key])
        if (trust, certificate) == (self._trust, self._certificate):
            return
        try:
            self._made = (trust, certificate, tls_context(trust, certificate))
        except Invalid:
            return
        self._trust, self._certificate = trust, certificate

    def tls(self, given: ClientCertificate | None = None) -> ssl.SSLContext:
        """The context with the certificate of a plugin, or with the cluster's own."""
        certificate = given or self._certificate
        if self._made is None or self._made[:2] != (self._trust, certificate):
            self._made = (self._trust, certificate, tls_context(self._trust, certificate))
        return self._made[2]


def _texts(files: Iterable[Path]) -> dict[Path, str]:
    return {file: file.read_text(encoding="utf-8") for file in files}
