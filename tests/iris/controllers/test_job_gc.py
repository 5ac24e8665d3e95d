"""Ended jobs are let go by age and by number, with their logs and the blobs that nobody else names."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from neorion.iris.app.controller import start
from neorion.iris.app.parts import ControllerParts, ControllerSettings
from neorion.iris.app.standby import SCHEMA
from neorion.iris.controllers import job_gc
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model import Digest, FunctionCall, JobName, JobSpec, Resources, TaskReason
from neorion.iris.model.record import Job
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
) -> AsyncGenerator[ControllerParts]:
    clock, rng = SystemClock(), system_rng()
    async with (
        open_store(folder / "iris.db", migrations=migrations_in(SCHEMA), clock=clock) as store,
        Supervisor() as crew,
    ):
        context = ControllerContext.for_store(store, clock, SystemIds(), rng)
        yield await start(settings or ControllerSettings(folder), context, crew, unwatched)
        crew.cancel()


async def ended_job(parts: ControllerParts, name: str, body: bytes) -> Job:
    digest = Digest(hashlib.sha256(body).hexdigest())
    await parts.blobs.put(digest, body)
    spec = JobSpec(JobName(f"/ada/{name}"), FunctionCall(digest), Resources(1000))
    job, _existed = parts.admission.submit(spec, name, Digest(""))
    parts.lifecycle.cancel(job.id, TaskReason.CANCELLED)
    await parts.context.journal.wait_durable()
    return job


async def sweep(parts: ControllerParts) -> None:
    """Three times: what was looked at lately is spared twice."""
    for _ in range(3):
        await parts.job_gc.tick()


@pytest.mark.parametrize("size", [10, 100_000])
async def test_an_old_job_goes_with_its_blobs_and_stays_gone(tmp_path: Path, size: int):
    async with controller(tmp_path) as parts:
        job = await ended_job(parts, "old", b"x" * size)
        parts.log_store.append(job.id, "attempt-1", 0, b"text")  # pyright: ignore[reportArgumentType] -- any name will do
        await sweep(parts)
        assert job.id in parts.context.cluster.jobs
        await parts.context.journal.wait_durable()
    async with controller(tmp_path, ControllerSettings(tmp_path, keep_jobs_for=Duration(0))) as parts:
        await sweep(parts)
        assert job.id not in parts.context.cluster.jobs
        assert not await parts.blobs.has(job.spec.entry.function)  # pyright: ignore[reportAttributeAccessIssue] -- a call
        assert not (tmp_path / "logs" / job.id).exists()
        await parts.context.journal.wait_durable()
    async with controller(tmp_path) as parts:
        assert not parts.context.cluster.jobs
        assert not parts.context.cluster.keys


async def test_the_oldest_go_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_gc, "KEEP_JOBS", 2)
    async with controller(tmp_path) as parts:
        jobs = [await ended_job(parts, f"job-{number}", b"%d" % number) for number in range(5)]
        await sweep(parts)
        assert list(parts.context.cluster.jobs) == [job.id for job in jobs[3:]]


async def test_a_blob_that_another_job_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_gc, "KEEP_JOBS", 1)
    async with controller(tmp_path) as parts:
        await ended_job(parts, "one", b"shared")
        other = await ended_job(parts, "other", b"shared")
        await sweep(parts)
        assert await parts.blobs.get(other.spec.entry.function) == b"shared"  # pyright: ignore[reportAttributeAccessIssue] -- a call


async def test_a_blob_that_was_just_sent_again_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(job_gc, "KEEP_JOBS", 0)
    async with controller(tmp_path) as parts:
        job = await ended_job(parts, "one", b"again")
        digest: Digest = job.spec.entry.function  # pyright: ignore[reportAttributeAccessIssue] -- a call
        await parts.job_gc.tick()
        assert await parts.blobs.has(digest)
        await parts.job_gc.tick()
        assert await parts.blobs.get(digest) == b"again"
        await sweep(parts)
        with pytest.raises(NotFound):
            await parts.blobs.get(digest)
