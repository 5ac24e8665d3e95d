"""Authentication: principals, bearer tokens, roles."""

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from neorion.keel.base import Invalid

# Roles that are never assigned: every caller has ANYONE, every caller with a valid token has KNOWN.
ANYONE: Final = "anyone"
KNOWN: Final = "known"
# The bytes of a digest that select its row; the rest is compared in constant time.
_BUCKET: Final = 8


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller with a name and roles."""

    name: str
    roles: frozenset[str] = frozenset()


class Authenticator(Protocol):
    """Finds the owner of a token. Implementations compare secrets in constant time, and never store or log one."""

    async def authenticate(self, token: str) -> Principal | None:
        """Returns the owner of the token, or None if it is not valid."""
        ...


class TokenAuthenticator:
    """A fixed set of tokens. Only their digests are kept, so neither a dump nor timing reveals one."""

    __slots__ = ("_owners",)

    def __init__(self, owners: Mapping[str, Principal]) -> None:
        for token, principal in owners.items():
            check_secret(token, principal.name)
        self._owners = {
            digest[:_BUCKET]: (digest, principal)
            for digest, principal in ((_digest(token), principal) for token, principal in owners.items())
        }

    async def authenticate(self, token: str) -> Principal | None:
        presented = _digest(token)
        digest, principal = self._owners.get(presented[:_BUCKET], (b"", None))
        return principal if hmac.compare_digest(digest, presented) else None


class ChainedAuthenticator:
    """Several authenticators. The first that accepts a token decides."""

    __slots__ = ("_authenticators",)

    def __init__(self, *authenticators: Authenticator) -> None:
        self._authenticators = authenticators

    async def authenticate(self, token: str) -> Principal | None:
        for authenticator in self._authenticators:
            if (principal := await authenticator.authenticate(token)) is not None:
                return principal
        return None


class AnonymousFallback:
    """Accepts callers without a token as `guest`, on this machine only. A caller with a token is authenticated."""

    __slots__ = ("_authenticator", "guest")

    def __init__(self, known: Authenticator, guest: Principal) -> None:
        self._authenticator = known
        self.guest = guest

    async def authenticate(self, token: str) -> Principal | None:
        return await self._authenticator.authenticate(token)


def is_local_name(host: bytes) -> bool:
    """True if the Host header is a name that only this machine has.

    A page of another site can make a browser on this machine call any name that the site's DNS resolves, but none of
    these.
    """
    name, _, port = host.decode("latin-1").rpartition(":")
    name = (name if port.isdigit() else host.decode("latin-1")).strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def check_secret(secret: str, owner: str) -> None:
    """Rejects an empty secret."""
    if not secret.strip():
        raise Invalid(
            "rpc.empty_token",
            f"The token of {owner} is empty.",
            hint="Generate a token of at least 32 characters.",
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
