"""The port `Scheduler` over the webhooks of another scheduler."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import msgspec

from neorion.keel.base import Denied, Duration, Error, Invalid, Retry
from neorion.keel.clock import Clock
from neorion.navarch.adapters.notify.addresses import (
    CheckedResolver,
    ForbiddenAddress,
    check_url,
    refusal,
)
from neorion.navarch.model import Node, NodeId
from neorion.navarch.ports import DrainProgress, SchedulingStatus

# A response is a word and a sentence. A longer one does not come from a scheduler.
BODY_MAX: Final = 64 * 1024
_SENTENCE_MAX: Final = 300
_CONNECTIONS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where each message goes; one without an address is not sent. Headers may hold secrets and are shown nowhere."""

    cordon_url: str = ""
    uncordon_url: str = ""
    drain_url: str = ""
    drain_status_url: str = ""
    timeout: Duration = field(default=Duration.of(seconds=30))
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class DrainStatus(msgspec.Struct, frozen=True):
    """The scheduler's status of a drain."""

    drained: bool
    message: str = ""


class WebhookScheduler:
    """Notifies another scheduler, and polls it until a node is drained. Made by `webhook`."""

    def __init__(self, settings: WebhookSettings, session: aiohttp.ClientSession, clock: Clock) -> None:
        self._settings = settings
        self._session = session
        self._clock = clock
        # Told once in this process; a drain that goes on after a restart is told again.
        self._draining: set[NodeId] = set()

    async def cordon(self, node: Node, why: str) -> None:
        await self._tell(self._settings.cordon_url, "cordon", node, why)

    async def uncordon(self, node: Node) -> SchedulingStatus:
        """The scheduler's acknowledgement is what is known: it has no address to ask about a node."""
        self._draining.discard(node.id)
        await self._tell(self._settings.uncordon_url, "uncordon", node, node.why)
        return SchedulingStatus(schedulable=True)

    async def drain(self, node: Node, why: str, left: Duration) -> DrainProgress:
        """A scheduler that is away, or that makes no sense, keeps a node no longer than one that still works on it."""
        over = not left > Duration(0)
        try:
            found = await self._ask_to_leave(node, why)
        except Error as error:
            if not over:
                raise
            found = DrainProgress(done=False, sentence=error.sentence.removesuffix("."))
        if over and not found.done:
            return DrainProgress(done=True, sentence=f"its time is over ({found.sentence})")
        return found

    async def machine_up(self, node: Node) -> bool | None:
        """Unknown: the webhook has no address to ask about a machine."""
        del node
        return None

    async def forget(self, node: Node) -> None:
        self._draining.discard(node.id)

    async def _ask_to_leave(self, node: Node, why: str) -> DrainProgress:
        if node.id not in self._draining:
            await self._tell(self._settings.drain_url, "drain", node, why)
            self._draining.add(node.id)
        if not self._settings.drain_status_url:
            return DrainProgress(
                done=True, sentence="the scheduler was told; it has no address to ask how far it is"
            )
        status = await self._status(node)
        message = " ".join(status.message.split())[:_SENTENCE_MAX]
        if status.drained:
            return DrainProgress(done=True, sentence=message or "the scheduler says that nothing runs on it")
        return DrainProgress(done=False, sentence=message or "the scheduler says that it is not drained yet")

    async def _tell(self, url: str, event: str, node: Node, why: str) -> None:
        if not url:
            return
        body = {
            "event": event,
            "node_id": str(node.id),
            "pool": node.pool,
            "machine": str(node.machine),
            "machine_name": node.machine_name or node.kube_name,
            "reason": why,
            "timestamp": str(self._clock.now()),
        }
        await self._send("POST", url, json=body)

    async def _status(self, node: Node) -> DrainStatus:
        url = self._settings.drain_status_url
        answer = await self._send("GET", url, params={"node_id": str(node.id)})
        try:
            return msgspec.json.decode(answer, type=DrainStatus)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Invalid(
                "navarch.notify_answer",
                f"{_without_query(url)} answers something else than a drain's status: {error}.",
                hint='Answer {"drained": false, "message": "2 jobs left"}.',
            ) from None

    async def _send(
        self,
        method: str,
        url: str,
        *,
        json: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        check_url(url)
        try:
            # A redirect would send our headers, and so secrets, to another address.
            async with self._session.request(
                method, url, json=json, params=params, allow_redirects=False
            ) as response:
                body = b""
                async for piece in response.content.iter_any():
                    body += piece
                    if len(body) > BODY_MAX:
                        break
                _check(url, response.status, len(body))
                return body
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if isinstance(error, ForbiddenAddress) or isinstance(error.__cause__, ForbiddenAddress):
                raise refusal(url) from None
            raise Retry(
                "navarch.notify_unreachable",
                f"{_without_query(url)} does not answer: {type(error).__name__}.",
                hint="Check that the other scheduler is up.",
            ) from None


@asynccontextmanager
async def webhook(settings: WebhookSettings, clock: Clock) -> AsyncGenerator[WebhookScheduler]:
    timeout = aiohttp.ClientTimeout(total=settings.timeout.seconds)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=_CONNECTIONS_MAX, resolver=CheckedResolver()),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=dict(settings.headers),
        timeout=timeout,
    ) as session:
        yield WebhookScheduler(settings, session, clock)


def _check(url: str, status: int, size: int) -> None:
    if size > BODY_MAX:
        raise Invalid(
            "navarch.notify_too_long",
            f"{_without_query(url)} answers more than {BODY_MAX} bytes.",
            hint="Answer with less.",
        )
    if 200 <= status < 300:
        return
    answer = f"{_without_query(url)} answers {status}"
    if status >= 500 or status == 429:
        raise Retry("navarch.notify_failed", f"{answer}.", hint="Read the other scheduler's log.")
    if status in (401, 403):
        raise Denied("navarch.notify_denied", f"{answer}.", hint="Check server.notifier.webhook.headers.")
    if 300 <= status < 400:
        raise Invalid(
            "navarch.notify_redirect",
            f"{answer}, and redirects are not followed.",
            hint="Name the last address.",
        )
    raise Invalid(
        "navarch.notify_refused", f"{answer}.", hint="Check the addresses of server.notifier.webhook."
    )


def _without_query(url: str) -> str:
    """The address without its query, which may contain secrets."""
    return url.partition("?")[0][:100]
