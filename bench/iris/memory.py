"""What a controller keeps in memory: finished and live tasks, in its own book over its own store, in a fresh process."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from bench.kit import Report
from neorion.iris.app.standby import SCHEMA
from neorion.iris.controllers.admission import Admission
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.lifecycle import LifecycleManager
from neorion.iris.model import Digest, ExitKind, JobId, JobName, JobSpec, Resources, SliceId, WorkerId
from neorion.iris.model.record import Outcome, Worker
from neorion.iris.model.spec import FunctionCall
from neorion.iris.state import load
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.run import Supervisor
from neorion.keel.store import migrations_in, open_store

FINISHED, LIVE = 100_000, 10_000
WORKERS = 100
_PAGE = 4096


def run(report: Report) -> None:
    for tasks in (1000, 1):
        sizes = [_measured(FINISHED // part, LIVE // part, tasks) for part in (10, 1)]
        for (filled, loaded), part in zip(sizes, (10, 1), strict=True):
            count = (FINISHED + LIVE) // part
            title = f"{FINISHED // part:,} finished and {LIVE // part:,} live, {tasks:,} to a job"
            report.alone(f"{title}, as they come", "MB", lambda found=filled: found / 1e6, rounds=1)
            report.alone(f"{title}, after a restart", "MB", lambda found=loaded: found / 1e6, rounds=1)
            report.alone(f"{title}", "bytes/task", lambda found=filled, n=count: found / n, rounds=1)
        print(f"growth of ten times the tasks: {sizes[1][0] / sizes[0][0]:.1f} times the memory")


def _measured(finished: int, live: int, tasks: int) -> tuple[float, float]:
    """Bytes in use because of the tasks: in the process that saw them, and in one that read them from the store."""
    with tempfile.TemporaryDirectory() as folder:
        return _asked("fill", folder, finished, live, tasks), _asked("load", folder)


def _asked(*args: object) -> float:
    command = [sys.executable, "-m", "bench.iris.memory", *map(str, args)]
    return float(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _fill(
    context: ControllerContext, lifecycle: LifecycleManager, workers: list[WorkerId], number: int, tasks: int
) -> JobId:
    """A job whose tasks all run."""
    spec = JobSpec(
        JobName(f"/ada/job-{number}"), FunctionCall(Digest("f" * 64)), Resources(1000, 2**30), replicas=tasks
    )
    job, _ = Admission(context).submit(spec, f"key-{number}", Digest(f"{number:064x}"))
    for index in range(tasks):
        lifecycle.begin(job.id, index, workers[index % WORKERS], (), "")
    return job.id


def _finish(context: ControllerContext, lifecycle: LifecycleManager, job: JobId) -> None:
    for task in list(context.cluster.tasks[job]):
        # Another text each time, as it comes from the wire.
        ending = Outcome(result=Digest(f"{task.index % 7:064x}"), result_bytes=40)
        lifecycle.end(context.cluster.attempts[task.attempt], ExitKind.EXIT, ending)


def _worker(context: ControllerContext, number: int) -> WorkerId:
    worker = Worker(
        context.ids.new(WorkerId), SliceId(f"slice-{number}"), "host", Resources(), {}, context.clock.now()
    )
    context.cluster.put_worker(worker)
    return worker.id


async def _main(verb: str, folder: str, *counts: str) -> None:
    clock = SystemClock()
    async with (
        open_store(Path(folder) / "iris.db", migrations=migrations_in(SCHEMA), clock=clock) as store,
        Supervisor() as crew,
    ):
        context = ControllerContext.for_store(store, clock, SystemIds(), system_rng())
        crew.spawn("iris.journal", context.journal.run)
        before = _resident()
        if verb == "fill":
            finished, live, tasks = map(int, counts)
            lifecycle = LifecycleManager(context)
            workers = [_worker(context, number) for number in range(WORKERS)]
            for number in range((finished + live) // tasks):
                job = _fill(context, lifecycle, workers, number, tasks)
                if number < finished // tasks:
                    _finish(context, lifecycle, job)
                lifecycle.take()
                if number * tasks % 1000 == 0:
                    await context.journal.wait_durable()
            await context.journal.wait_durable()
        else:
            await load(store, context.cluster)
        print(json.dumps(_resident() - before))
        crew.cancel()


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1], sys.argv[2], *sys.argv[3:])
