"""The worker process: one runtime, one connection to the controller."""

from dataclasses import dataclass
from pathlib import Path

from neorion.iris.app.runtime import RuntimeChoice, open_runtime
from neorion.iris.worker import CALL_TIMEOUT, Identity, WorkerDaemon
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import connect
from neorion.keel.run import Supervisor


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Where the controller is, what the worker shows it, where its files lie, and how it runs tasks."""

    controller: str
    token: str | None
    folder: Path
    runtime: RuntimeChoice


async def run_worker(crew: Supervisor, identity: Identity, setup: WorkerSetup) -> None:
    clock, rng = SystemClock(), system_rng()
    setup.folder.mkdir(parents=True, exist_ok=True)
    async with (
        open_runtime(setup.runtime, setup.folder, clock, rng) as runtime,
        connect(setup.controller, ids=SystemIds(), token=setup.token, timeout=CALL_TIMEOUT) as channel,
    ):
        worker = WorkerDaemon(channel, runtime, setup.folder, clock, rng)

        async def live() -> None:
            await worker.run(identity)

        crew.spawn("iris.worker", live)
        await crew.stopping.wait()
        crew.cancel()
