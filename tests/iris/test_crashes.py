"""kill -9 of everything, again and again, under load: no result is lost, none comes twice, tasks run once at a time."""

import fcntl
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from neorion.iris.client import AsyncIrisClient
from neorion.keel.base import Duration
from neorion.keel.clock import Rng, SystemClock
from neorion.keel.clock.virtual import seeded_rng
from neorion.keel.run import Backoff, retry
from tests.iris.processes import Cluster, kill, processes_in

pytestmark = pytest.mark.anyio
CLOCK = SystemClock()
T = TypeVar("T")
# Callers at once, each with one job after the other.
LINES = 6
# What a quiet machine needs to start a cluster.
START_S = 1.0
# On a busy machine a controller takes longer to start than a client waits by itself.
PATIENCE = Backoff(first=Duration.of(seconds=1), most=Duration.of(seconds=2), attempts=30)


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


async def submit_and_wait(client: AsyncIrisClient, folder: Path, name: str, rng: Rng) -> None:
    seconds = rng.choice((0.0, 0.05, 0.5))

    async def patiently(call: Callable[[], Awaitable[T]]) -> T:
        return await retry(call, PATIENCE, CLOCK, rng)

    work = marking(str(folder), name, seconds)
    job = await patiently(
        lambda: client.submit(work, name, key=name, retries=1_000, preemption_retries=1_000)
    )
    value = await patiently(lambda: client.wait(job, timeout=120))
    (ended,) = (await patiently(lambda: client.ended(job.id, 60))).tasks
    assert value == ended.attempt, "the value is not the last attempt's"
    assert (folder / f"{name}.{value}.end").exists(), "a value of an attempt that did not end"
    again = await patiently(lambda: client.wait(job, timeout=60))
    assert value == again, "the value has changed"


def strike(cluster: Cluster, rng: Rng, spared_until: float) -> float:
    """Kills one thing; daemons and the controller are started again, as a supervisor would.

    Returns until when the controller is spared: on a busy machine it takes long to start, and is then to be up for as long
    as it was down, or nobody would ever reach it.
    """
    for worker in cluster.workers:
        if not worker.running:
            cluster.start_worker(worker)
    worker = rng.choice(cluster.workers)
    match rng.choice(("controller", "daemon", "daemon", "anything", "anything", "anything")):
        case "controller" if CLOCK.monotonic() >= spared_until:
            began = CLOCK.monotonic()
            cluster.controller.kill()
            cluster.start_controller()
            return 2 * CLOCK.monotonic() - began
        case "daemon":
            worker.kill()
            cluster.start_worker(worker)
        case _:
            below = [pid for pid in processes_in(worker.folder) if pid != worker.pid]
            if below:
                kill(rng.choice(below))
    return spared_until


async def ordeal(folder: Path, seconds: float, seed: int) -> None:
    marks = folder / "marks"
    marks.mkdir()
    rng = seeded_rng(seed)
    jobs, lines = 0, LINES
    began = CLOCK.monotonic()
    with Cluster(folder, worker_timeout="5s") as cluster:
        # A busy machine starts programs slowly. Struck as often as on a quiet one, none would get to its work.
        pace = max(1.0, (CLOCK.monotonic() - began) / START_S)
        until = CLOCK.monotonic() + seconds
        async with AsyncIrisClient.remote(cluster.url) as client:

            async def demand(line: int) -> None:
                nonlocal jobs, lines
                number = 0
                while CLOCK.monotonic() < until:
                    number += 1
                    await submit_and_wait(client, marks, f"job-{line}-{number}", rng)
                    jobs += 1
                lines -= 1

            async with anyio.create_task_group() as group:
                for line in range(LINES):
                    group.start_soon(demand, line)
                spared_until = 0.0
                # Until every line has its last value: how many that are in a given time, the machine decides.
                while lines:
                    await CLOCK.sleep(Duration.of(seconds=rng.uniform(0.1, 1.2) * pace))
                    spared_until = await anyio.to_thread.run_sync(strike, cluster, rng, spared_until)
    for program in (cluster.controller, *cluster.workers):
        # A worker may give up on a fork server that was killed again and again, but nothing ends by a mistake.
        assert "code: cli." not in (program.folder / "stderr").read_text()
    assert jobs >= LINES, "hardly anything was done"
    assert [path.name for path in marks.glob("*.overlap")] == []


@pytest.mark.timeout(360)
async def test_everything_may_be_killed_at_any_time(tmp_path: Path):
    await ordeal(tmp_path, 12, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(800)
@pytest.mark.parametrize("seed", range(2, 5))
async def test_everything_may_be_killed_for_minutes(tmp_path: Path, seed: int):
    await ordeal(tmp_path, 120, seed)
