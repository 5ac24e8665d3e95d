"""The client for programs with an event loop."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from neorion.keel.clock import SystemIds
from neorion.keel.rpc import Channel, ClientTls, PinnedToken, connect
from neorion.navarch.model.gen import navarch_pb as pb
from neorion.navarch.model.gen.navarch_client import FleetServiceClient
from neorion.navarch.model.tokens import token_file

PAGE = 1_000


class NavarchClient:
    """Client of one control plane, for operators."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.calls = channel.client(FleetServiceClient)

    @classmethod
    def remote(cls, address: str, *, token: str | None = None, tls: ClientTls | None = None) -> Self:
        """`address` with or without a scheme. Without a token: NAVARCH_AUTH_TOKEN, or the one left on this machine."""
        given = token or os.environ.get("NAVARCH_AUTH_TOKEN")
        return cls(connect(address, ids=SystemIds(), token=local_token(address, given, os.environ), tls=tls))

    async def pools(self) -> Sequence[pb.Pool]:
        return (await self.calls.list_pools(pb.ListPoolsRequest())).pools

    async def nodes(
        self, pool: str = "", states: Sequence[str] = (), *, unhealthy: bool = False
    ) -> AsyncIterator[pb.Node]:
        """Page by page, in the order of their birth."""
        after = ""
        while True:
            request = pb.ListNodesRequest(
                pool=pool, states=list(states), unhealthy=unhealthy, after=after, limit=PAGE
            )
            page = await self.calls.list_nodes(request)
            for node in page.nodes:
                yield node
            after = page.next
            if not after:
                return

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channel.__aexit__(kind, error, trace)


def local_token(address: str, given: str | None, env: Mapping[str, str]) -> str | None:
    """The given token, with the pin that a control plane left on this machine; without one, the token left here."""
    found = _left_token(address, env)
    if not given:
        return found
    pin, token = PinnedToken.parse(given)
    return str(PinnedToken(pin or PinnedToken.parse(found).pin, token))


def _left_token(address: str, env: Mapping[str, str]) -> str | None:
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if host not in ("localhost", "127.0.0.1", "[::1]") or not port.isdecimal():
        return None
    try:
        return Path(token_file(env, int(port))).read_text().strip() or None
    except OSError:
        return None
