"""Pins: the digest of a server's certificate, written before a token.

The holder of such a token can tell the right server from any other before it sends the token. The form is
`sha256:HEX:TOKEN`; the token may be empty where a server asks for none.
"""

import hashlib
import hmac
import re
import ssl
from typing import Final, NamedTuple

from neorion.keel.base import Invalid

_FORM: Final = re.compile(r"(sha256:[0-9a-f]{64}):(.*)", re.DOTALL)


class PinnedToken(NamedTuple):
    """A token and the pin of the server that it is for. Without a pin the server proves itself in another way, or not."""

    pin: str
    token: str | None

    @classmethod
    def parse(cls, text: str | None) -> "PinnedToken":
        found = _FORM.fullmatch(text or "")
        return cls("", text) if found is None else cls(found[1], found[2] or None)

    def __str__(self) -> str:
        return f"{self.pin}:{self.token or ''}" if self.pin else self.token or ""


class PinMismatch(ssl.SSLCertVerificationError):
    """The server has another key than that of the pin."""


def check_proof(address: str, token: str | None) -> None:
    """Refuses a token without a pin on plain HTTP: the server there can be any process that has bound its port."""
    if token and not PinnedToken.parse(token).pin and not address.startswith("https:"):
        raise Invalid(
            "rpc.unpinned",
            f"The server at {address[:100]} cannot prove who it is, so the token was not sent.",
            hint="Write the server's pin before the token (sha256:HEX:TOKEN), or use https://.",
        )


def certificate_pin(certificate: bytes) -> str:
    """The pin of a certificate in DER."""
    return f"sha256:{hashlib.sha256(certificate).hexdigest()}"


def pinned_context(pin: str, base: ssl.SSLContext | None = None) -> ssl.SSLContext:
    """TLS with that server alone, whatever name it is reached by. `base` brings further demands of its own."""
    context = base or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if base is None:
        context.check_hostname = False
        # The handshake proves that the server has the key of its certificate, and the pin identifies the certificate.
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.sslobject_class = type("Pinned", (PinnedConnection,), {"pin": pin})
    return context


class PinnedConnection(ssl.SSLObject):
    """Ends the handshake with an error where the certificate is another one, before anything is sent."""

    pin: str

    def do_handshake(self) -> None:
        super().do_handshake()
        shown = certificate_pin(self.getpeercert(binary_form=True) or b"")
        if not hmac.compare_digest(shown, self.pin):
            raise PinMismatch(1, "the certificate is not the one of the pin")
