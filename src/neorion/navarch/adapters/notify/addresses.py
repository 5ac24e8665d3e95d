"""Addresses to which messages for another scheduler must not go.

The other scheduler usually has a private address, so those are allowed. Link-local addresses are those of the clouds'
metadata services, which hand out credentials and take orders to any machine that asks.
"""

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from neorion.keel.base import Invalid

# The metadata service of AWS over IPv6, which is no link-local address.
_METADATA: Final = frozenset({ipaddress.ip_address("fd00:ec2::254")})


class ForbiddenAddress(OSError):
    """A name leads to an address that messages must not go to."""


class CheckedResolver(AbstractResolver):
    """Resolves a name once and connects to what it has checked: a name cannot change in between."""

    def __init__(self) -> None:
        self._inner = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if any(forbidden(one["host"]) for one in found):
            raise ForbiddenAddress(host)
        return found

    async def close(self) -> None:
        await self._inner.close()


def check_url(url: str) -> None:
    """Refuses a forbidden address that is written as a number, because those are not resolved."""
    if forbidden(urlsplit(url).hostname or ""):
        raise refusal(url)


def refusal(url: str) -> Invalid:
    return Invalid(
        "navarch.notify_address",
        f"{url.partition('?')[0][:100]} is an address of a metadata service, not of a scheduler.",
        hint="Check the addresses of server.notifier.webhook.",
    )


def forbidden(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
