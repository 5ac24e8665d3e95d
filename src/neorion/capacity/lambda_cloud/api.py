"""Calls to Lambda's API: paced, bounded in time, and their failures in the words of the port."""

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

# A launch answers within seconds; after this nobody knows.
TIMEOUT: Final = Duration.of(seconds=30)
# A list of all machines of a large account is a few megabytes.
_ANSWER_BYTES_MAX: Final = 64 * 2**20
# More than an hour is a mistake, not a wish.
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
    """Where the API answers, its key, and how often it may be asked."""

    url: str
    key: SecretValue
    every: Duration


@dataclass(frozen=True, slots=True)
class CallScope:
    """What a call is about: a region, or one machine."""

    scope: str = "its account"
    machine: str = ""


ACCOUNT: Final = CallScope()


class LambdaApi:
    """One account. Requests go out one by one, `every` so often: more are refused with 429."""

    def __init__(self, name: str, door: ApiEndpoint, clock: Clock) -> None:
        self._name = name
        self._door = door
        self._clock = clock
        self._transport = http_transport(door.url)
        self._next = 0.0

    async def get(self, path: str, kind: type[T], about: CallScope = ACCOUNT) -> T:
        return self._read(await self._ask(path, None, about), kind)

    async def post(self, path: str, body: Mapping[str, Any], kind: type[T], about: CallScope) -> T:
        return self._read(await self._ask(path, body, about), kind)

    async def close(self) -> None:
        await self._transport.aclose()

    async def _ask(self, path: str, body: Mapping[str, Any] | None, about: CallScope) -> bytes:
        await self._turn()
        headers = [("Authorization", f"Bearer {self._door.key.reveal()}"), ("Accept", "application/json")]
        request = Request("GET", path, headers)
        if body is not None:
            # Ids are texts of their own kinds.
            content = msgspec.json.encode(body, enc_hook=str)
            request = Request("POST", path, [*headers, ("Content-Type", "application/json")], content)
        try:
            async with asyncio.timeout(TIMEOUT.seconds):
                head, content = await fetch(self._transport, request, _ANSWER_BYTES_MAX)
        except FAILURES as error:
            # A TimeoutError is an OSError too. Only the kind is told: texts of clients may hold the request.
            raise unknown_outcome(self._name, type(error).__name__) from None
        if head.status != 200:
            raise self._refusal(head, content, about)
        return content

    async def _turn(self) -> None:
        now = self._clock.monotonic()
        at = max(now, self._next)
        self._next = at + self._door.every.seconds
        if at > now:
            await self._clock.sleep(Duration.of(seconds=at - now))

    def _read(self, content: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise unknown_outcome(self._name, f"an answer that makes no sense, {error}") from None

    def _refusal(self, head: ResponseHead, content: bytes, about: CallScope) -> Error:
        try:
            said = msgspec.json.decode(content, type=ErrorResponse).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = ErrorResponse().error
        words = f"{said.code}: {said.message}" if said.code else f"HTTP {head.status}"
        if said.code in _SCOPED:
            return _SCOPED[said.code](self._name, about.scope, words)
        if head.status in (401, 403) or said.code in _NOT_ALLOWED:
            return not_allowed(self._name, words)
        if head.status == 429:
            return rate_limited(self._name, _after(head), words)
        if head.status == 404 and about.machine:
            return no_machine(self._name, about.machine)
        return unknown_outcome(self._name, words) if head.status >= 500 else refused(self._name, words)


def _after(head: ResponseHead) -> Duration | None:
    said = head.headers.get("retry-after", "")
    return Duration.of(seconds=min(int(said), _AFTER_S_MOST)) if said.isdecimal() else None
