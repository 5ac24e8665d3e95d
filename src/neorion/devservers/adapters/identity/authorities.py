"""Certificates of a company's authorities: who they are of, and whether they hold."""

from pathlib import Path

import asyncssh
from asyncssh.public_key import CERT_TYPE_USER, SSHOpenSSHCertificate, decode_ssh_certificate

from neorion.keel.base import Denied
from neorion.keel.telemetry import logger

log = logger(__name__)


class UserAuthorities:
    """The authorities of a company whose user certificates log in: a file of public keys, read at each login."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def authorized_keys(self, user: str) -> asyncssh.SSHAuthorizedKeys | None:
        """Admits certificates that name the user among their principals. None where there is no authority."""
        lines = [f'cert-authority,principals="{user}" {line}' for line in self._lines() if wire_form(line)]
        return asyncssh.import_authorized_keys("\n".join(lines)) if lines else None

    def trusts(self, key: asyncssh.SSHKey) -> bool:
        return key.public_data in set(map(wire_form, self._lines()))

    def _lines(self) -> list[str]:
        if self._file is None:
            return []
        try:
            text = self._file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            log.warning("user authorities cannot be read", file=str(self._file), error=str(error))
            return []
        return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def wire_form(line: str) -> bytes | None:
    """None for a line that is not a public key, although the API server admitted it."""
    try:
        return asyncssh.import_public_key(line).public_data
    except (asyncssh.KeyImportError, ValueError):
        log.warning("public key cannot be read", begins=line[:30])
        return None


def certificate_line(blob: bytes) -> str:
    """The certificate of a login as one line of text. Empty for a plain key."""
    try:
        return decode_ssh_certificate(blob).export_certificate().decode().strip()
    except asyncssh.KeyImportError:
        return ""


def check_certificate(line: str, user: str, authorities: UserAuthorities) -> None:
    """Raises Denied unless the certificate is valid now, names the user, and is signed by an authority.

    Whether the address of the client is among those it names, only the bastion can see.
    """
    try:
        certificate = asyncssh.import_certificate(line)
    except (asyncssh.KeyImportError, ValueError):
        raise _refused("The certificate cannot be read, or its signature is wrong.") from None
    if not isinstance(certificate, SSHOpenSSHCertificate):
        raise _refused("The certificate is not one of OpenSSH.")
    if not authorities.trusts(certificate.signing_key):
        raise _refused("The certificate is not signed by an authority of this cluster.")
    if user not in certificate.principals:
        raise _refused(f"The certificate does not name the user {user}.")
    try:
        certificate.validate(CERT_TYPE_USER, user)
    except ValueError as error:
        raise _refused(f"{error}.") from None


def _refused(sentence: str) -> Denied:
    return Denied(
        "devservers.certificate_refused", sentence, hint="Get another certificate and log in again."
    )
