"""What the controller remembers, whatever store it is kept in."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neorion.iris.app.standby import SCHEMA
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model import (
    AttemptId,
    AttemptState,
    Command,
    Digest,
    JobId,
    JobName,
    JobSpec,
    JobState,
    Resources,
    SliceId,
    TaskReason,
    TaskState,
    WorkerId,
)
from neorion.iris.model.record import Attempt, Job, Outcome, Slice, Task, Worker
from neorion.iris.state import attempts_of, attempts_of_job, load
from neorion.keel.base import Instant
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.run import Supervisor
from neorion.keel.store import InlineExecutor, MemoryDisk, Store, migrations_in, open_store
from tests.keel.store.postgres_server import PostgresServer, postgres_server

pytestmark = pytest.mark.anyio
WHEN = Instant(1_700_000_000_000_000_001)
RESOURCES = Resources(1500, 2**40, 7, 8, "H100")

Place = str | Path | MemoryDisk


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgres", marks=pytest.mark.needs("postgres"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "sqlite":
            return tmp_path / "iris.db"
        case "postgres":
            running: PostgresServer = request.getfixturevalue("server")
            return running.new_schema()
        case _:
            return MemoryDisk()


@asynccontextmanager
async def controller(place: Place) -> AsyncGenerator[tuple[ControllerContext, Store]]:
    """One life of a controller: it has read what the one before it wrote."""
    clock, rng = SystemClock(), system_rng()
    lane = InlineExecutor() if isinstance(place, MemoryDisk) else None
    async with (
        open_store(place, migrations=migrations_in(SCHEMA), clock=clock, lane=lane) as store,
        Supervisor() as crew,
    ):
        context = ControllerContext.for_store(store, clock, SystemIds(), rng)
        await load(store, context.cluster)
        crew.spawn("journal", context.journal.run)
        yield context, store
        await context.journal.wait_durable()
        crew.cancel()


def job(name: str, replicas: int = 1) -> Job:
    spec = JobSpec(JobName(f"/ada/{name}"), Command(("echo", "ä\n")), RESOURCES, replicas)
    return Job(JobId(name), spec, WHEN, key=f"key of {name}", content=Digest("f" * 64))


def attempt(name: str, of: str, index: int, number: int, state: AttemptState) -> Attempt:
    ending = Outcome(TaskReason.EXIT_CODE, 3, "three", Digest("a" * 64), 5) if state.ended else Outcome()
    return Attempt(AttemptId(name), JobId(of), index, number, WorkerId("w"), WHEN, state, ending=ending)


def fill(context: ControllerContext) -> None:
    cluster = context.cluster
    cluster.put_worker(Worker(WorkerId("w"), SliceId("s"), "host", RESOURCES, {"zone": "ü"}, WHEN))
    cluster.put_slice(Slice(SliceId("s"), "group", WHEN))
    # Names of which one begins another, and more tasks than one digit counts.
    for name in ("job-1", "job-10", "job-1-a"):
        cluster.put_job(job(name, 12))
        for index in range(12):
            cluster.put_task(Task(JobId(name), index, WHEN))
    cluster.put_attempt(attempt("first", "job-1", 11, 1, AttemptState.FAILED))
    live = attempt("second", "job-1", 11, 2, AttemptState.RUNNING)
    cluster.put_task(Task(JobId("job-1"), 11, WHEN, TaskState.RUNNING, live.id, tries=2, failures=1))
    cluster.put_attempt(live)


async def test_a_controller_that_starts_again_knows_what_was_durable(place: Place):
    async with controller(place) as (context, _):
        fill(context)
        before = context.cluster
        await context.journal.wait_durable()
    async with controller(place) as (context, store):
        after = context.cluster
        assert after.jobs == before.jobs
        assert after.tasks == before.tasks
        assert after.workers == before.workers
        assert after.slices == before.slices
        assert after.attempts == before.attempts
        assert (after.names, after.keys, after.counts) == (before.names, before.keys, before.counts)
        assert after.free(WorkerId("w")) == before.free(WorkerId("w"))
        told = await attempts_of(store, "job-1", 11)
        assert [one.id for one in told] == ["first", "second"]
        assert told[0].ending.code == 3


async def test_what_is_dropped_takes_its_own_along_and_nothing_else(place: Place):
    async with controller(place) as (context, _):
        fill(context)
        done = Task(JobId("job-1"), 11, WHEN, TaskState.FAILED)
        context.cluster.put_attempt(attempt("second", "job-1", 11, 2, AttemptState.LOST))
        context.cluster.put_task(done)
        context.cluster.drop_job(JobId("job-1"))
        context.cluster.drop_worker(WorkerId("w"))
        context.cluster.drop_slice(SliceId("s"))
    async with controller(place) as (context, store):
        assert list(context.cluster.jobs) == ["job-1-a", "job-10"]
        assert [len(tasks) for tasks in context.cluster.tasks.values()] == [12, 12]
        assert (context.cluster.workers, context.cluster.slices) == ({}, {})
        assert await attempts_of_job(store, "job-1") == []


async def test_the_last_of_many_changes_is_what_is_kept(place: Place):
    async with controller(place) as (context, _):
        fill(context)
        for state in (JobState.RUNNING, JobState.SUCCEEDED):
            record = context.cluster.jobs[JobId("job-10")]
            context.cluster.put_job(Job(record.id, record.spec, WHEN, state=state, ended=WHEN))
    async with controller(place) as (context, _):
        assert context.cluster.jobs[JobId("job-10")].state is JobState.SUCCEEDED
