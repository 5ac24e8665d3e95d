"""Calls to Lambda's API: rate limited, with timeouts, and with errors of the port."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from neorion.capacity.lambda_cloud.api_types import ErrorResponse
from neorion.capacity.provider import (
    no_capacity,
    no_machine,
    not_allowed,
    quota,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.keel.base import Duration, Error
from neorion.keel.clock import Clock
from neorion.keel.config import SecretValue
from neorion.keel.http.client import FAILURES, Request, fetch
from neorion.keel.http.message import ResponseHead
from neorion.keel.rpc import http_transport

T = TypeVar("T")

# A launch is answered within seconds; after this its outcome is unknown.
TIMEOUT: Final = Duration.of(seconds=30)
# A list of all machines of a large account is a few megabytes.
_ANSWER_BYTES_MAX: Final = 64 * 2**20
# A longer wait is taken for a mistake.
_AFTER_S_MOST: Final = 3_600
_SCOPED: Final = {
    "instance-operations/launch/insufficient-capacity": no_capacity,
    "global/quota-exceeded": quota,
}
_NOT_ALLOWED: Final = frozenset(
    {"global/account-inactive", "global/forbidden", "global/invalid-address", "global/invalid-api-key"}
)


@dataclass(frozen=True, slots=True)
class ApiEndpoint:
    """The URL of the API, its key, and the interval between requests."""

    url: str
    key: SecretValue
    every: Duration


@dataclass(frozen=True, slots=True)
class CallScope:
    """The subject of a call: a region, or one machine."""

    scope: str = "its account"
    machine: str = ""


ACCOUNT: Final = CallScope()


class LambdaApi:
    """One account. Requests are sent one by one at the interval `every`, because the API rejects more with 429."""

    def __init__(self, name: str, endpoint: ApiEndpoint, clock: Clock) -> None:
        self._name = name
        self._endpoint = endpoint
        self._clock = clock
        self._transport = http_transport(endpoint.url)
        self._next = 0.0

    async def get(self, path: str, kind: type[T], about: CallScope = ACCOUNT) -> T:
        return self._read(await self._ask(path, None, about), kind)

    async def post(self, path: str, body: Mapping[str, Any], kind: type[T], about: CallScope) -> T:
        return self._read(await self._ask(path, body, about), kind)

    async def close(self) -> None:
        await self._transport.aclose()

    async def _ask(self, path: str, body: Mapping[str, Any] | None, about: CallScope) -> bytes:
        await self._turn()
        headers = [("Authorization", f"Bearer {self._endpoint.key.reveal()}"), ("Accept", "application/json")]
        request = Request("GET", path, headers)
        if body is not None:
            # Ids are subclasses of str, which msgspec does not encode.
            content = msgspec.json.encode(body, enc_hook=str)
            request = Request("POST", path, [*headers, ("Content-Type", "application/json")], content)
        try:
            async with asyncio.timeout(TIMEOUT.seconds):
                head, content = await fetch(self._transport, request, _ANSWER_BYTES_MAX)
        except FAILURES as error:
            # A TimeoutError is an OSError too. Only the type is included, because texts of clients may contain the
            # request.
            raise unknown_outcome(self._name, type(error).__name__) from None
        if head.status != 200:
            raise self._refusal(head, content, about)
        return content

    async def _turn(self) -> None:
        now = self._clock.monotonic()
        at = max(now, self._next)
        self._next = at + self._endpoint.every.seconds
        if at > now:
            await self._clock.sleep(Duration.of(seconds=at - now))

    def _read(self, content: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unknown_outcome(self._name, f"an answer that makes no sense, {error}") from None

    def _refusal(self, head: ResponseHead, content: bytes, about: CallScope) -> Error:
        try:
            details = msgspec.json.decode(content, type=ErrorResponse).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            details = ErrorResponse().error
        words = f"{details.code}: {details.message}" if details.code else f"HTTP {head.status}"
        if details.code in _SCOPED:
            return _SCOPED[details.code](self._name, about.scope, words)
        if head.status in (401, 403) or details.code in _NOT_ALLOWED:
            return not_allowed(self._name, words)
        if head.status == 429:
            return rate_limited(self._name, _after(head), words)
        if head.status == 404 and about.machine:
            return no_machine(self._name, about.machine)
        return unknown_outcome(self._name, words) if head.status >= 500 else refused(self._name, words)


def _after(head: ResponseHead) -> Duration | None:
    details = head.headers.get("retry-after", "")
    return Duration.of(seconds=min(int(details), _AFTER_S_MOST)) if details.isdecimal() else None
