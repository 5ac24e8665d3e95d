"""What a worker writes of itself: little, for its log is kept for as long as its machine."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from neorion.iris.model import Resources
from neorion.iris.testing.memory_runtime import MemoryRuntime, ScriptedOutcome
from neorion.iris.worker import Identity, WorkerDaemon
from neorion.keel.base import Duration
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import connect

pytestmark = pytest.mark.anyio


class Hasty(SystemClock):
    """Lets nobody wait, and tells when somebody has wanted to so many times."""

    def __init__(self, times: int) -> None:
        self._left = times
        self.over = anyio.Event()

    async def sleep(self, span: Duration) -> None:
        del span
        self._left -= 1
        if not self._left:
            self.over.set()
        await anyio.lowlevel.checkpoint()


async def test_a_controller_that_stays_away_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    clock = Hasty(times=50)
    async with connect("127.0.0.1:1", ids=SystemIds(), token="token") as nowhere:
        runtime = MemoryRuntime(tmp_path / "runtime", SystemClock(), lambda _: ScriptedOutcome())
        worker = WorkerDaemon(nowhere, runtime, tmp_path / "worker", clock, system_rng())
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run, Identity("by-hand-1", "host", Resources(), {}))
            await clock.over.wait()
            group.cancel_scope.cancel()
    assert caplog.text.count("lost touch with the controller") == 1
