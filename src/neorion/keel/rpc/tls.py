"""Which PEM files make a connection secret, on either side."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The server's certificate, and the authority of client certificates if they are required.

    A client certificate only opens the connection, because granian does not report which one it was.
    Roles come from tokens.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class ClientTls:
    """Whom a client trusts, and the certificate it shows. Without `ca` it trusts what the machine trusts."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
