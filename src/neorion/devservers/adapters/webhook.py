"""Tells warnings to an address that the operator of the cluster chose, over HTTP."""

import ipaddress
import socket
from functools import partial
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import DefaultResolver

from neorion.devservers.model import Alert
from neorion.keel.base import Duration, Retry, Terminal
from neorion.keel.clock import Clock, Rng
from neorion.keel.config import SecretValue
from neorion.keel.run import Backoff, retry

# The receiver may be restarting. After half a minute this warning is given up, and the next one is tried.
BACKOFF = Backoff(first=Duration.of(seconds=1), most=Duration.of(seconds=10), attempts=4)
PATIENCE_S = 10.0


class AlertWebhook:
    """Posts each warning as JSON; its `text` is what Slack and its kind show.

    Redirects are not followed, and an address inside the cluster or the machine is refused unless that is allowed: what
    is behind it would take the operator for a friend.
    """

    def __init__(self, url: SecretValue, clock: Clock, rng: Rng, *, allow_private: bool = False) -> None:
        self._url = url
        self._clock = clock
        self._rng = rng
        self._allow_private = allow_private

    async def send(self, alert: Alert) -> None:
        body = {
            "text": alert.text,
            "server": alert.server,
            "namespace": alert.namespace,
            "owner": alert.owner,
            "stops": alert.stops.isoformat(),
            "reason": alert.reason.value,
        }
        await retry(partial(self._post, body), BACKOFF, self._clock, self._rng)

    async def _post(self, body: dict[str, str]) -> None:
        connector = aiohttp.TCPConnector(resolver=None if self._allow_private else _PublicResolver())
        patience = aiohttp.ClientTimeout(total=PATIENCE_S)
        try:
            async with (
                aiohttp.ClientSession(connector=connector, timeout=patience) as session,
                session.post(self._checked(), json=body, allow_redirects=False) as answer,
            ):
                status = answer.status
        except _NotPublic:
            raise _private() from None
        except (aiohttp.ClientError, TimeoutError) as error:
            if isinstance(error.__cause__, _NotPublic):
                raise _private() from None
            raise Retry(
                "devservers.webhook_lost",
                f"The webhook could not be reached: {type(error).__name__}.",
                hint="Check that the receiver of the webhook runs.",
            ) from None
        if status >= 500 or status == 429:
            raise Retry(
                "devservers.webhook_busy", f"The webhook answered {status}.", hint="It is tried again."
            )
        if status >= 300:
            raise Terminal(
                "devservers.webhook_refused",
                f"The webhook answered {status}.",
                hint="Check the address in the operator's file; redirects are not followed.",
            )

    def _checked(self) -> str:
        """An address that is a number is not looked up, and so is checked here."""
        url = self._url.reveal()
        host = urlsplit(url).hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return url
        if not self._allow_private and not address.is_global:
            raise _private()
        return url


class _NotPublic(OSError):
    """A name that leads to an address of a private network."""


class _PublicResolver(AbstractResolver):
    """Looks names up once and connects to what it has checked: a name cannot change its mind in between."""

    def __init__(self) -> None:
        self._inner = DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if not all(ipaddress.ip_address(one["host"]).is_global for one in found):
            raise _NotPublic(f"{host} is not public")
        return found

    async def close(self) -> None:
        await self._inner.close()


def _private() -> Terminal:
    return Terminal(
        "devservers.webhook_private",
        "The webhook's address is not public.",
        hint="Choose another, or set webhook.allow_private in the operator's file.",
    )
