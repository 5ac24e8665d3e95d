"""The worker process: one runtime, one connection to the controller."""

from pathlib import Path

from neorion.iris.adapters.runtimes.process.runtime import ProcessRuntime
from neorion.iris.worker import CALL_TIMEOUT, Identity, WorkerDaemon
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import connect
from neorion.keel.run import Supervisor


async def run_worker(
    crew: Supervisor, identity: Identity, controller: str, token: str | None, folder: Path
) -> None:
    clock = SystemClock()
    folder.mkdir(parents=True, exist_ok=True)
    async with (
        ProcessRuntime(folder / "runtime", clock) as runtime,
        connect(controller, ids=SystemIds(), token=token, timeout=CALL_TIMEOUT) as channel,
    ):
        worker = WorkerDaemon(channel, runtime, folder, clock, system_rng())

        async def live() -> None:
            await worker.run(identity)

        crew.spawn("iris.worker", live)
        await crew.stopping.wait()
        crew.cancel()
