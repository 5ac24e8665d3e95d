"""Ended jobs are let go by age and by number, with their logs and the blobs that nobody else names."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neorion.iris.app.controller import SCHEMA, ControllerSettings, start
from neorion.iris.controllers import job_gc
from neorion.iris.controllers.admission import submit
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model import Digest, FunctionCall, JobName, JobSpec, Resources, TaskReason
from neorion.iris.model.record import Job
from neorion.iris.serve.services import ControllerServices
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.run import Supervisor
from neorion.keel.store import migrations_in, open_store

pytestmark = pytest.mark.anyio


def unwatched(name: str, seconds: float, *, failed: bool) -> None:
    pass


@asynccontextmanager
async def controller(
    folder: Path, settings: ControllerSettings | None = None
) -> AsyncGenerator[ControllerServices]:
    clock, rng = SystemClock(), system_rng()
    async with (
        open_store(folder / "iris.db", migrations=migrations_in(SCHEMA), clock=clock) as store,
        Supervisor() as crew,
    ):
        deck = ControllerContext.over(store, clock, SystemIds(), rng)
        yield await start(settings or ControllerSettings(folder), deck, store, crew, unwatched)
        crew.cancel()


async def ended_job(desk: ControllerServices, name: str, body: bytes) -> Job:
    digest = Digest(hashlib.sha256(body).hexdigest())
    await desk.blobs.put(digest, body)
    spec = JobSpec(JobName(f"/ada/{name}"), FunctionCall(digest), Resources(1000))
    job, _existed = submit(desk.deck, spec, name, Digest(""))
    desk.lives.cancel(job.id, TaskReason.CANCELLED)
    await desk.deck.journal.wait_durable()
    return job


async def sweep(desk: ControllerServices) -> None:
    """Three times: what was looked at lately is spared twice."""
    for _ in range(3):
        await desk.retention.tick()


@pytest.mark.parametrize("size", [10, 100_000])
async def test_an_old_job_goes_with_its_blobs_and_stays_gone(tmp_path: Path, size: int):
    async with controller(tmp_path) as desk:
        job = await ended_job(desk, "old", b"x" * size)
        desk.shelf.append(job.id, "attempt-1", 0, b"text")  # pyright: ignore[reportArgumentType] -- any name will do
        await sweep(desk)
        assert job.id in desk.deck.book.jobs
        await desk.deck.journal.wait_durable()
    async with controller(tmp_path, ControllerSettings(tmp_path, keep_jobs_for=Duration(0))) as desk:
        await sweep(desk)
        assert job.id not in desk.deck.book.jobs
        assert not await desk.blobs.has(job.spec.entry.function)  # pyright: ignore[reportAttributeAccessIssue] -- a call
        assert not (tmp_path / "logs" / job.id).exists()
        await desk.deck.journal.wait_durable()
    async with controller(tmp_path) as desk:
        assert not desk.deck.book.jobs
        assert not desk.deck.book.keys


async def test_the_oldest_go_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_gc, "KEEP_JOBS", 2)
    async with controller(tmp_path) as desk:
        jobs = [await ended_job(desk, f"job-{number}", b"%d" % number) for number in range(5)]
        await sweep(desk)
        assert list(desk.deck.book.jobs) == [job.id for job in jobs[3:]]


async def test_a_blob_that_another_job_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_gc, "KEEP_JOBS", 1)
    async with controller(tmp_path) as desk:
        await ended_job(desk, "one", b"shared")
        other = await ended_job(desk, "other", b"shared")
        await sweep(desk)
        assert await desk.blobs.get(other.spec.entry.function) == b"shared"  # pyright: ignore[reportAttributeAccessIssue] -- a call


async def test_a_blob_that_was_just_sent_again_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_gc, "KEEP_JOBS", 0)
    async with controller(tmp_path) as desk:
        job = await ended_job(desk, "one", b"again")
        digest: Digest = job.spec.entry.function  # pyright: ignore[reportAttributeAccessIssue] -- a call
        await desk.retention.tick()
        assert await desk.blobs.has(digest)
        await desk.retention.tick()
        assert await desk.blobs.get(digest) == b"again"
        await sweep(desk)
        with pytest.raises(NotFound):
            await desk.blobs.get(digest)
