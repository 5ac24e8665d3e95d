"""Requests through a gateway, by host and headers, as a client outside of the cluster sends them."""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from neorion.conformance.adapters.recording import RecordingApi
from neorion.keel.base import Retry
from neorion.keel.clock import Clock

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
# Of an answer; a backend's name is much shorter.
_BYTES_MAX: Final = 65_536


class GatewayClient:
    """Sends requests to one address. What a series of them got is recorded as counts."""

    def __init__(self, api: RecordingApi, session: aiohttp.ClientSession, address: str, clock: Clock) -> None:
        self._api = api
        self._session = session
        self._address = f"[{address}]" if ":" in address else address
        self._clock = clock

    async def ask(self, host: str, headers: Mapping[str, str] = {}) -> tuple[int, str]:
        """The status and the beginning of the body."""
        try:
            async with self._session.get(self._url("who"), headers={"Host": host, **headers}) as answer:
                return answer.status, (await answer.content.read(_BYTES_MAX)).decode(errors="replace")
        except (TimeoutError, aiohttp.ClientError) as error:
            raise Retry(
                "conformance.gateway",
                f"The gateway at {self._address} does not answer: {error}.",
                hint="Check that the address of the gateway is reachable from here.",
            ) from error

    async def count(self, host: str, requests: int, headers: Mapping[str, str] = {}) -> dict[str, int]:
        """Counts the answers of each backend. Answers with another status count by that status."""
        counts: Counter[str] = Counter()
        for _ in range(requests):
            status, body = await self.ask(host, headers)
            counts[body if status == 200 else f"status {status}"] += 1
        self._api.note(
            "traffic", {"host": host, "headers": dict(headers), "requests": requests, "answers": dict(counts)}
        )
        return dict(counts)

    async def stream(self, host: str) -> tuple[float, float]:
        """The times at which the first and the last part of a stream arrived."""
        try:
            async with self._session.get(self._url("stream"), headers={"Host": host}) as answer:
                times = [self._clock.monotonic() async for _ in answer.content.iter_any()]
        except (TimeoutError, aiohttp.ClientError) as error:
            raise Retry(
                "conformance.gateway",
                f"The gateway at {self._address} does not answer: {error}.",
                hint="Check that the address of the gateway is reachable from here.",
            ) from error
        self._api.note("stream", {"host": host, "parts": len(times), "monotonic": times[:10]})
        return (times[0], times[-1]) if times else (0.0, 0.0)

    def _url(self, script: str) -> str:
        return f"http://{self._address}/cgi-bin/{script}"


@asynccontextmanager
async def gateway_client(api: RecordingApi, address: str, clock: Clock) -> AsyncGenerator[GatewayClient]:
    # A connection for each request: some gateways choose a backend once for each connection.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(timeout=_TIMEOUT, connector=connector) as session:
        yield GatewayClient(api, session, address, clock)
