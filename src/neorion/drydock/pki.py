"""The cluster's certificates: authorities, and the certificates that they sign."""

import ipaddress
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from neorion.keel.clock import Clock

Key = EllipticCurvePrivateKey | RSAPrivateKey

# Much longer than a cluster exists; and the clock of another machine may be slightly behind.
_LIFETIME: Final = timedelta(days=3650)
_SKEW: Final = timedelta(hours=1)


def elliptic_key() -> EllipticCurvePrivateKey:
    """A key that almost all programs accept; generated a hundred times as fast as an RSA key."""
    return ec.generate_private_key(ec.SECP256R1())


def rsa_key() -> RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a certificate: `name` and `groups` are used by Kubernetes' RBAC; `hosts` are names and addresses."""

    name: str
    groups: Sequence[str] = ()
    hosts: Sequence[str] = ()

    def as_name(self) -> x509.Name:
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in self.groups]
        return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    def alternatives(self) -> x509.SubjectAlternativeName:
        return x509.SubjectAlternativeName([_general_name(host) for host in self.hosts])


class Pki:
    """Certificates and keys as files in one folder, created once. `<who>.crt` and `<who>.key` belong together."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def certificate(self, who: str) -> Path:
        return self._folder / f"{who}.crt"

    def key(self, who: str) -> Path:
        return self._folder / f"{who}.key"

    def authority(
        self, who: str, hosts: Sequence[str] = (), make_key: Callable[[], Key] = elliptic_key
    ) -> None:
        """Creates a certificate that signs others."""
        if not self.certificate(who).exists():
            key = make_key()
            subject = Subject(f"drydock-{who}", hosts=hosts)
            builder = (
                self._begin(subject, subject.as_name(), key)
                .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
                .add_extension(_signing_usage(), critical=True)
            )
            self._save(who, key, builder.sign(key, hashes.SHA256()))

    def issue(self, who: str, subject: Subject, authority: str = "ca") -> None:
        """Creates a certificate, valid for a server under the subject's hosts and for a client under its name."""
        if self.certificate(who).exists():
            return
        issuer = x509.load_pem_x509_certificate(self.certificate(authority).read_bytes())
        signer = serialization.load_pem_private_key(self.key(authority).read_bytes(), None)
        assert isinstance(signer, Key)  # noqa: S101 -- created as such
        key = elliptic_key()
        builder = self._begin(subject, issuer.subject, key).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        self._save(who, key, builder.sign(signer, hashes.SHA256()))

    def key_pair(self, who: str) -> None:
        """Creates a bare pair, `<who>.key` and `<who>.pub`, which signs service account tokens."""
        if not self.key(who).exists():
            key = elliptic_key()
            public = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            (self._folder / f"{who}.pub").write_bytes(public)
            self._save_key(who, key)

    def kubeconfig(self, path: Path, who: str, server: str) -> None:
        """Writes a kubeconfig for `who`."""
        entry = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "drydock",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": _inline(self.certificate("ca")),
                    },
                }
            ],
            "users": [
                {
                    "name": who,
                    "user": {
                        "client-certificate-data": _inline(self.certificate(who)),
                        "client-key-data": _inline(self.key(who)),
                    },
                }
            ],
            "contexts": [{"name": "drydock", "context": {"cluster": "drydock", "user": who}}],
            "current-context": "drydock",
        }
        _write(path, yaml.safe_dump(entry, sort_keys=False).encode())

    def _begin(self, subject: Subject, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
        now = datetime.fromtimestamp(self._clock.now().ns / 1e9, UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject.as_name())
            .issuer_name(issuer)
            .public_key(key.public_key())
            # Random, because counted serials would collide when nodes are added at the same time.
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _LIFETIME)
        )
        return builder.add_extension(subject.alternatives(), critical=False) if subject.hosts else builder

    def _save(self, who: str, key: Key, certificate: x509.Certificate) -> None:
        self._save_key(who, key)
        # The certificate last, so that its key exists whenever it does.
        _write(self.certificate(who), certificate.public_bytes(serialization.Encoding.PEM))

    def _save_key(self, who: str, key: Key) -> None:
        pem = key.private_bytes(
            # Kueue reads keys in this form only; all other programs accept any.
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        _write(self.key(who), pem)


def _write(path: Path, content: bytes) -> None:
    partial = path.with_name(path.name + ".part")
    partial.touch(mode=0o600)
    partial.write_bytes(content)
    partial.replace(path)


def _inline(path: Path) -> str:
    return b64encode(path.read_bytes()).decode()


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signing_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
