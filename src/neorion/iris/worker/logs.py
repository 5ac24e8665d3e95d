"""What attempts write, on its way to the controller while they run and after they ended."""

import anyio

from neorion.iris.model import AttemptId
from neorion.iris.model.gen.iris_connect import WorkerServiceClient
from neorion.iris.ports import Phase, Runtime

CHUNK_BYTES_MAX = 256 * 1024
# How far behind a follower may be; short enough to feel live.
SHIP_EVERY_S = 0.2


class LogShipper:
    """Sends the new part of every log that grew. The controller says how far it has kept each."""

    def __init__(self, runtime: Runtime, calls: WorkerServiceClient) -> None:
        self._runtime = runtime
        self._calls = calls
        self._kept: dict[AttemptId, int] = {}

    async def run(self, worker: str) -> None:
        while True:
            for seen in await self._runtime.seen():
                if seen.phase is not Phase.BUILDING:
                    await self.ship(worker, seen.attempt)
            await anyio.sleep(SHIP_EVERY_S)
