"""Who calls, and what they may: principals, bearer tokens, roles."""

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from neorion.keel.base import Invalid

# Roles nobody has to be given: everybody is ANYONE, whoever showed a valid token is KNOWN.
ANYONE: Final = "anyone"
KNOWN: Final = "known"
# Bytes of a digest that find its row; the rest is compared in constant time.
_BUCKET: Final = 8


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody the server knows by name."""

    name: str
    roles: frozenset[str] = frozenset()


class Authenticator(Protocol):
    """Tells whose token it is. Compare secrets in constant time, and never keep or log one."""

    async def authenticate(self, token: str) -> Principal | None:
        """The owner of the token, or None when nobody owns it."""
        ...


class TokenAuthenticator:
    """Tokens known in advance. Only their digests are kept, so neither a dump nor a timing gives one away."""

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
    """Several authenticators. The first that knows a token decides."""

    __slots__ = ("_authenticators",)

    def __init__(self, *authenticators: Authenticator) -> None:
        self._authenticators = authenticators

    async def authenticate(self, token: str) -> Principal | None:
        for authenticator in self._authenticators:
            if (principal := await authenticator.authenticate(token)) is not None:
                return principal
        return None


class AnonymousFallback:
    """Lets in whoever shows no token, as `guest`, on this machine alone; who shows one is who owns it."""

    __slots__ = ("_known", "guest")

    def __init__(self, known: Authenticator, guest: Principal) -> None:
        self._known = known
        self.guest = guest

    async def authenticate(self, token: str) -> Principal | None:
        return await self._known.authenticate(token)


def is_local_name(host: bytes) -> bool:
    """Whether the caller used a name that only this machine has.

    A page of a stranger can make a browser on this machine call any name that the stranger's own servers resolve, but not
    under one of these.
    """
    name, _, port = host.decode("latin-1").rpartition(":")
    name = (name if port.isdigit() else host.decode("latin-1")).strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def check_secret(secret: str, owner: str) -> None:
    """Refuses an empty secret, which everybody knows."""
    if not secret.strip():
        raise Invalid(
            "rpc.empty_token",
            f"The token of {owner} is empty, so everybody would know it.",
            hint="Generate a token of at least 32 characters.",
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
