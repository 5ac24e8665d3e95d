"""TLS contexts for the API server, from PEM texts."""

import os
import ssl
from collections.abc import Generator
from contextlib import contextmanager

from neorion.keel.base import Invalid
from neorion.keel.kube.client.cluster_config import CaBundle, ClientCertificate


def tls_context(trust: CaBundle, certificate: ClientCertificate | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=trust.ca or None)
    except ssl.SSLError:
        raise Invalid(
            "kube.authority",
            "The cluster's certificate authority is not a valid PEM certificate.",
            hint="Check certificate-authority-data.",
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 requires extensions that the authorities of many clusters omit.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    with _file(certificate.chain) as chain, _file(certificate.key) as key:
        try:
            # A key with a passphrase is refused, as by kubectl: OpenSSL would prompt on the terminal or read our
            # standard input.
            context.load_cert_chain(chain, key, password="")
        except (ssl.SSLError, ValueError):
            raise Invalid(
                "kube.certificate",
                "The client certificate and its key do not fit together.",
                hint="Check client-certificate-data and client-key-data; a key behind a passphrase is of no use here.",
            ) from None


@contextmanager
def _file(text: str) -> Generator[str]:
    """Writes a PEM text to a private temporary file, because `ssl` loads certificates from files only.

    The file is in memory where the system supports it.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pem"), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
        return
    import tempfile  # noqa: PLC0415 -- takes as long as the handshake

    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        yield file.name
