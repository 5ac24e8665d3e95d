"""Prints events of pools until it is interrupted."""

from collections import deque
from typing import Final

import anyio

from neorion.keel.base import Duration, Retry
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock
from neorion.navarch.cli.tables import LINES, HistoryRecord
from neorion.navarch.client import NavarchClient
from neorion.navarch.model.gen import navarch_pb as pb

# Stories are asked for this often; what happens is told within about a second.
_EVERY: Final = Duration.of(seconds=1)
_LINES: Final = 500


class EventPrinter:
    """Prints events of one pool, or of all pools that exist at the time."""

    def __init__(self, out: Output, client: NavarchClient, pool: str) -> None:
        self._out = out
        self._client = client
        self._pool = pool
        self._emit = out.watch(LINES)
        self._printed: dict[str, deque[tuple[int, str, str]]] = {}

    async def follow(self, most_s: float | None) -> None:
        # An unreachable control plane and a misspelt pool fail at once, because no event would ever arrive.
        if self._pool:
            await self._client.calls.get_pool(pb.GetPoolRequest(pool=self._pool))
        else:
            await self._client.pools()
        # Existing events are printed even with a very short time limit.
        away, clock = await self._try_poll(away=False), SystemClock()
        with anyio.move_on_after(most_s):
            while True:
                await clock.sleep(_EVERY)
                away = await self._try_poll(away=away)

    async def _try_poll(self, *, away: bool) -> bool:
        """Polls once. Returns True if the control plane is away, e.g. during an update."""
        try:
            await self._poll()
        except Retry as error:
            if not away:
                self._out.warn(f"{error.sentence} Events are printed when it answers again.")
            return True
        if away:
            self._out.say("It answers again.")
        return False

    async def _poll(self) -> None:
        for name in await self._pools():
            known = self._printed.setdefault(name, deque(maxlen=2 * _LINES))
            request = pb.HistoryRequest(subject=f"pool/{name}", limit=_LINES)
            for line in (await self._client.calls.history(request)).lines:
                key = (line.at_ms, line.event, line.sentence)
                if key not in known:
                    known.append(key)
                    self._emit(HistoryRecord.of(line))

    async def _pools(self) -> list[str]:
        return [self._pool] if self._pool else [pool.name for pool in await self._client.pools()]
