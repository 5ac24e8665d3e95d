"""A server's own key and certificate, created at its first start. Clients verify the certificate by its pin.

Imported only by a process that serves: making keys costs a command line's start-up.
"""

import ipaddress
import socket
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from neorion.keel.base import Invalid
from neorion.keel.config import write_secret
from neorion.keel.rpc.pin import certificate_pin
from neorion.keel.rpc.tls import ServerTls

_NAME: Final = "neorion"
# A pin has no end. RFC 5280 writes this date for certificates without one.
_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_END: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def self_signed(folder: Path) -> ServerTls:
    """The files in `folder`, made if they are missing. The folder and the files are readable by their owner alone.

    `server.pin` is what administrators write before a token that they hand out.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tls = ServerTls(folder / "server.crt", folder / "server.key")
    if not tls.cert.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        # The certificate last: where there is one, its key is there too.
        write_secret(tls.key, private.decode())
        write_secret(tls.cert, _certificate(key).public_bytes(serialization.Encoding.PEM).decode())
    write_secret(folder / "server.pin", f"{pin_of(tls)}:")
    return tls


def pin_of(tls: ServerTls) -> str:
    """The pin of a server's certificate, which is the first one in its file."""
    try:
        text = tls.cert.read_text()
        end = "-----END CERTIFICATE-----"
        first = text[text.index("-----BEGIN CERTIFICATE-----") : text.index(end) + len(end)]
        return certificate_pin(ssl.PEM_cert_to_DER_cert(first))
    except (OSError, ValueError):
        raise Invalid(
            "rpc.bad_certificate",
            f"The file {tls.cert} does not hold a certificate.",
            hint="Check the PEM file; a generated one may be deleted together with its key.",
        ) from None


def _certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _NAME)])
    addresses = [x509.IPAddress(ipaddress.ip_address(one)) for one in ("127.0.0.1", "::1")]
    names = [x509.DNSName("localhost")]
    host = socket.gethostname()
    if host.isascii() and host != "localhost":
        names.append(x509.DNSName(host))
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
        .add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        .sign(key, hashes.SHA256())
    )
