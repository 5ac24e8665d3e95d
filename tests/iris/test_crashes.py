"""kill -9 of everything, again and again, under load: no result is lost, none comes twice, tasks run once at a time."""

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from neorion.iris.client import AsyncIrisClient
from neorion.keel.base import Duration
from neorion.keel.clock import Rng, SystemClock
from neorion.keel.clock.virtual import seeded_rng
from tests.iris.processes import Cluster, kill, processes_in

pytestmark = pytest.mark.anyio
CLOCK = SystemClock()


def marking(folder: str, name: str, seconds: float) -> Callable[[], str]:
    """A task that leaves marks: one when it begins, one when it ends, and one if it is not alone."""

    def task() -> str:
        attempt = os.environ["IRIS_ATTEMPT_UID"]
        lock = os.open(f"{folder}/{name}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(os.open(f"{folder}/{name}.{attempt}.overlap", os.O_CREAT))
        # Fails where the same attempt has begun before.
        os.close(os.open(f"{folder}/{name}.{attempt}.begin", os.O_CREAT | os.O_EXCL))
        threading.Event().wait(seconds)
        os.close(os.open(f"{folder}/{name}.{attempt}.end", os.O_CREAT | os.O_EXCL))
        return attempt

    return task


async def submit_and_wait(client: AsyncIrisClient, folder: Path, name: str, seconds: float) -> None:
    job = await client.submit(
        marking(str(folder), name, seconds), name, retries=1_000, preemption_retries=1_000
    )
    value = await client.wait(job, timeout=120)
    (ended,) = (await client.ended(job.id, 60)).tasks
    assert value == ended.attempt, "the value is not the last attempt's"
    assert (folder / f"{name}.{value}.end").exists(), "a value of an attempt that did not end"
    assert value == await client.wait(job, timeout=60), "the value has changed"


def strike(cluster: Cluster, rng: Rng) -> None:
    """Kills one thing; daemons and the controller are started again, as a supervisor would."""
    for worker in cluster.workers:
        if not worker.running:
            cluster.start_worker(worker)
    worker = rng.choice(cluster.workers)
    match rng.choice(("controller", "daemon", "daemon", "anything", "anything", "anything")):
        case "controller":
            cluster.controller.kill()
            cluster.start_controller()
        case "daemon":
            worker.kill()
            cluster.start_worker(worker)
        case _:
            below = [pid for pid in processes_in(worker.folder) if pid != worker.pid]
            if below:
                kill(rng.choice(below))


async def ordeal(folder: Path, seconds: float, seed: int) -> None:
    marks = folder / "marks"
    marks.mkdir()
    rng = seeded_rng(seed)
    jobs = 0
    until = CLOCK.monotonic() + seconds
    with Cluster(folder) as cluster:
        async with AsyncIrisClient.remote(cluster.url) as client:

            async def demand(line: int) -> None:
                nonlocal jobs
                number = 0
                while CLOCK.monotonic() < until:
                    number += 1
                    await submit_and_wait(client, marks, f"job-{line}-{number}", rng.choice((0.0, 0.05, 0.5)))
                    jobs += 1

            async with anyio.create_task_group() as group:
                for line in range(6):
                    group.start_soon(demand, line)
                while CLOCK.monotonic() < until:
                    await CLOCK.sleep(Duration.of(seconds=rng.uniform(0.1, 1.2)))
                    await anyio.to_thread.run_sync(strike, cluster, rng)
    for program in (cluster.controller, *cluster.workers):
        # A worker may give up on a fork server that was killed again and again, but nothing ends by a mistake.
        assert "code: cli." not in (program.folder / "stderr").read_text()
    assert jobs >= seconds, "hardly anything was done"
    assert [path.name for path in marks.glob("*.overlap")] == []


@pytest.mark.timeout(180)
async def test_everything_may_be_killed_at_any_time(tmp_path: Path):
    await ordeal(tmp_path, 20, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(2, 5))
async def test_everything_may_be_killed_for_minutes(tmp_path: Path, seed: int):
    await ordeal(tmp_path, 120, seed)
