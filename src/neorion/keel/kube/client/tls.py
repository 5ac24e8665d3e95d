"""TLS towards the API server, from PEM texts."""

import ssl
from pathlib import Path

from neorion.keel.base import Invalid
from neorion.keel.kube.client.cluster import Certificate, Trust


def tls_context(trust: Trust, certificate: Certificate | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=trust.ca or None)
    except ssl.SSLError:
        raise Invalid(
            "kube.authority",
            "The cluster's certificate authority is no PEM certificate.",
            hint="Check certificate-authority-data.",
        ) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 demands extensions that the authorities of many clusters do not write.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: Certificate) -> None:
    import tempfile  # noqa: PLC0415 -- who has a token needs none

    # OpenSSL's Python face loads certificates from files only: these live in a private folder for a moment.
    with tempfile.TemporaryDirectory() as folder:
        chain, key = Path(folder) / "chain", Path(folder) / "key"
        chain.write_text(certificate.chain, encoding="utf-8")
        key.touch(mode=0o600)
        key.write_text(certificate.key, encoding="utf-8")
        try:
            context.load_cert_chain(chain, key)
        except (ssl.SSLError, ValueError):
            raise Invalid(
                "kube.certificate",
                "The client certificate and its key do not fit together.",
                hint="Check client-certificate-data and client-key-data.",
            ) from None
