"""The worker process: one runtime, one connection to the controller."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from neorion.iris.app.runtime import RuntimeChoice, open_runtime
from neorion.iris.model import AttemptId
from neorion.iris.ports import Phase, Runtime
from neorion.iris.worker import CALL_TIMEOUT, Identity, WorkerDaemon
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import Clock, SystemClock, SystemIds, system_rng
from neorion.keel.rpc import connect
from neorion.keel.run import Supervisor
from neorion.keel.telemetry import logger

log = logger(__name__)

# After the tasks have ended: for their last lines, and to tell the controller.
REPORT_S: Final = 5.0
_LOOK_EVERY: Final = Duration.of(ms=50)


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """Where the controller is, what the worker shows it, where its files lie, and how it runs tasks.

    With a `stop_grace` a worker that is told to end stops its tasks first. Without one they outlive it.
    """

    controller: str
    token: str | None
    folder: Path
    runtime: RuntimeChoice
    stop_grace: Duration = field(default=Duration(0))


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
        if setup.stop_grace:
            with anyio.move_on_after(setup.stop_grace.seconds + REPORT_S):
                await _stop_tasks(runtime, setup.stop_grace, clock)
        crew.cancel()


async def _stop_tasks(runtime: Runtime, grace: Duration, clock: Clock) -> None:
    """Returns when all have ended, and the controller knows of it: what it knows is forgotten here."""
    running = {seen.attempt for seen in await runtime.seen() if seen.phase is not Phase.ENDED}
    log.info("stopping tasks", tasks=len(running))
    async with anyio.create_task_group() as stops:
        for attempt in running:
            stops.start_soon(_stop, runtime, attempt, grace)
    while running & {seen.attempt for seen in await runtime.seen()}:
        await clock.sleep(_LOOK_EVERY)


async def _stop(runtime: Runtime, attempt: AttemptId, grace: Duration) -> None:
    with suppress(NotFound):
        await runtime.stop(attempt, grace)
