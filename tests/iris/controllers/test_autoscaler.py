"""Slices of a controller over a cloud in memory: what becomes of them, and of the tasks on their machines."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from msgspec import structs

from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.app.parts import ControllerSettings
from neorion.iris.controllers.autoscaler import Autoscaler, ControllerEndpoint
from neorion.iris.model import ExitKind, JobId, Resources, SliceState, WorkerId
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.iris.model.record import Outcome, Slice
from neorion.iris.model.scale_group import ScaleGroup
from neorion.iris.ports import SliceRequest
from neorion.iris.testing.memory_platform import MemoryPlatform
from neorion.keel.base import Conflict, Duration, Error, QuotaExceeded, Retry
from tests.iris.manual_clock import ManualClock
from tests.iris.serve.office import Office, asking, office

pytestmark = pytest.mark.anyio
AT_ONCE = Duration(0)
LONG = Duration.of(hours=1)
ENDING = Duration.of(seconds=10)
PAIRS = ScaleGroup(
    name="pairs",
    shape=Resources(4000, 2**32, 2**32),
    machines=2,
    min_slices=1,
    max_slices=1,
    priority=0,
    attributes=(),
    scale_up_delay=AT_ONCE,
    scale_down_delay=LONG,
    startup_grace=LONG,
    boot_timeout=LONG,
    init_timeout=LONG,
)


@dataclass(frozen=True)
class Scaled:
    """A controller with its autoscaler. `moved` is set whenever the autoscaler has done something by itself."""

    there: Office
    scaler: Autoscaler
    moved: asyncio.Event

    @property
    def slices(self) -> Sequence[Slice]:
        return list(self.there.parts.context.cluster.slices.values())

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            await self.moved.wait()
            self.moved.clear()


@asynccontextmanager
async def scaled(
    folder: Path, platform: MemoryPlatform, groups: Sequence[ScaleGroup]
) -> AsyncGenerator[Scaled]:
    # Nobody beats here, and nobody is to be lost for it.
    settings = ControllerSettings(folder, secret="a secret", lease=WorkerLeaseTiming.within(LONG))
    async with office(folder, settings) as there:
        parts = there.parts
        home = ControllerEndpoint("memory:1", parts.worker_tokens.slice_token)
        scaler = Autoscaler(parts.context, parts.scheduler, parts.reports, platform, groups, home)
        moved = asyncio.Event()
        scaler.wake.add(moved.set)
        async with anyio.create_task_group() as group:
            await scaler.adopt()
            group.start_soon(scaler.watch)
            group.start_soon(scaler.work)
            yield Scaled(there, scaler, moved)
            group.cancel_scope.cancel()


@pytest.mark.parametrize("state", [SliceState.CREATING, SliceState.BOOTSTRAPPING])
async def test_slices_of_a_group_that_is_no_more_are_given_back(tmp_path: Path, state: SliceState):
    platform = MemoryPlatform(ManualClock())
    async with scaled(tmp_path, platform, [PAIRS]) as before:
        await before.scaler.tick()
        await before.until(lambda: before.slices[0].state is SliceState.BOOTSTRAPPING)
        (old,) = before.slices
        before.there.parts.context.cluster.put_slice(structs.replace(old, state=state))
    async with scaled(tmp_path, platform, [replace(PAIRS, name="renamed")]) as after:
        await after.scaler.tick()
        await after.until(lambda: old.id not in {piece.id for piece in after.slices})
        (new,) = after.slices
        assert new.group == "renamed"
        await after.until(lambda: after.slices[0].state is SliceState.BOOTSTRAPPING)
        assert [seen.id for seen in await platform.list_all_slices()] == [new.id]


@pytest.mark.parametrize("what", ["given back", "gone before the controller came back"])
async def test_a_worker_that_somebody_ended_is_not_told_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
):
    caplog.set_level(logging.INFO)
    platform = MemoryPlatform(ManualClock())
    async with scaled(tmp_path, platform, [PAIRS]) as before:
        await before.scaler.tick()
        await before.until(lambda: before.slices[0].state is SliceState.BOOTSTRAPPING)
        (old,) = before.slices
        for _ in range(PAIRS.machines):
            await before.there.join(platform.order(old.id).token, old.id)
        job = await before.there.jobs("ada").submit(asking("/ada/job"))
        await before.there.started(job.id)
    if what != "given back":
        await platform.shutdown()
    async with scaled(tmp_path, platform, []) as after:
        await after.until(lambda: not after.slices)
        (task,) = after.there.parts.context.cluster.tasks[JobId(job.id)]
        assert task.ending.message == f"its worker was {what}"
    assert caplog.text.count("worker removed") == PAIRS.machines
    assert "lost" not in caplog.text


async def test_tasks_of_a_slice_that_lost_a_machine_are_tried_elsewhere_when_all_of_it_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    clock = ManualClock()
    platform = MemoryPlatform(clock, end_delay=ENDING)
    async with scaled(tmp_path, platform, [PAIRS]) as here:
        await here.scaler.tick()
        await here.until(lambda: here.slices[0].state is SliceState.BOOTSTRAPPING)
        (piece,), cluster = here.slices, here.there.parts.context.cluster
        for _ in range(PAIRS.machines):
            await here.there.join(platform.order(piece.id).token, piece.id)
        await here.scaler.tick()
        job = await here.there.jobs("ada").submit(asking("/ada/job"))
        begun = (await here.there.started(job.id)).attempt

        await platform.lose(piece.id)
        await here.until(lambda: here.slices[0].state is SliceState.FAILED)
        assert list(cluster.attempts) == [begun]
        told = platform.changes()
        await here.scaler.tick()
        while (await anext(told)).state is not SliceState.DELETING:
            pass
        later = await here.there.jobs("ada").submit(asking("/ada/later"))
        await here.there.parts.scheduler.tick()
        assert list(cluster.attempts) == [begun]

        clock.advance(ENDING)
        await here.until(lambda: not here.slices)
        assert not cluster.attempts
        assert not cluster.workers
        assert set(cluster.waiting()) == {job.id, later.id}
        assert cluster.tasks[JobId(job.id)][0].ending.message == "its worker was lost"
    assert caplog.text.count("worker lost") == PAIRS.machines


async def test_a_slice_whose_worker_was_revoked_is_replaced(tmp_path: Path):
    platform = MemoryPlatform(ManualClock())
    async with scaled(tmp_path, platform, [PAIRS]) as here:
        await here.scaler.tick()
        await here.until(lambda: here.slices[0].state is SliceState.BOOTSTRAPPING)
        (old,), cluster = here.slices, here.there.parts.context.cluster
        joined = [await here.there.join(platform.order(old.id).token, old.id) for _ in range(PAIRS.machines)]
        await here.scaler.tick()
        await here.there.cluster("root").revoke(pb.RevokeRequest(worker=joined[0].worker))
        await here.scaler.tick()
        # Until its lease is over it may run tasks, and so may the other.
        assert here.slices[0].state is SliceState.READY
        here.there.parts.reports.mark_worker_lost(cluster.workers[WorkerId(joined[0].worker)], "silent")
        await here.scaler.tick()
        assert here.slices[0].state is SliceState.FAILED
        await here.scaler.tick()
        await here.until(lambda: not here.slices)
        await here.scaler.tick()
        (new,) = here.slices
        assert new.id != old.id


async def test_a_quota_that_refused_many_slices_at_once_is_tried_again_as_soon_as_one_that_refused_one(
    tmp_path: Path,
):
    clock = ManualClock()
    platform = MemoryPlatform(clock, {"pairs": FaultProfile(quota=0)})
    async with scaled(tmp_path, platform, [replace(PAIRS, min_slices=6, max_slices=6)]) as here:
        here.there.parts.context.clock = clock
        await here.scaler.tick()
        await here.until(lambda: all(piece.state is SliceState.FAILED for piece in here.slices))
        await here.scaler.tick()
        await here.until(lambda: not here.slices)
        platform.set_faults("pairs", FaultProfile())
        clock.advance(Duration.of(minutes=5))
        await here.scaler.tick()
        assert len(here.slices) == 1


class Busy(MemoryPlatform):
    """A cloud that answers `busy` until it is told what else to do."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.answer: Error | None = Retry("cloud.busy", "The cloud is busy.", after=Duration(1))
        self.asked = asyncio.Event()

    async def create_slice(self, order: SliceRequest) -> None:
        self.asked.set()
        if self.answer is not None:
            raise self.answer
        await super().create_slice(order)


@pytest.mark.parametrize(
    "answer", [None, QuotaExceeded("cloud.quota", "The quota is used up.", scope="pairs")], ids=str
)
async def test_a_slice_that_was_given_up_while_the_cloud_was_busy_is_not_made(
    tmp_path: Path, answer: Error | None
):
    clock = ManualClock()
    platform = Busy(clock)
    async with scaled(tmp_path, platform, [PAIRS]) as here:
        here.there.parts.context.clock = clock
        await here.scaler.tick()
        await platform.asked.wait()
        (late,) = here.slices
        clock.advance(PAIRS.boot_timeout + PAIRS.init_timeout)
        for _ in range(2):
            await here.scaler.tick()
        await here.until(lambda: not here.slices)
        platform.answer = answer
        clock.advance(LONG)
        await here.scaler.tick()
        (fresh,) = here.slices
        await here.until(lambda: here.slices[0].state is not SliceState.CREATING)
        made = [] if answer else [fresh.id]
        assert [seen.id for seen in await platform.list_all_slices()] == made, f"{late.id} is nobody's"


async def test_what_became_of_slices_that_nobody_recorded_is_learnt_at_the_start(tmp_path: Path):
    """The controller was killed after the cloud had said it, and before it was written down."""
    platform = MemoryPlatform(ManualClock())
    async with scaled(tmp_path, platform, [PAIRS]) as before:
        await before.scaler.tick()
        await before.until(lambda: before.slices[0].state is SliceState.BOOTSTRAPPING)
        (piece,) = before.slices
        before.there.parts.context.cluster.put_slice(structs.replace(piece, state=SliceState.CREATING))
    async with scaled(tmp_path, platform, [PAIRS]) as after:
        for _ in range(PAIRS.machines):
            await after.there.join(platform.order(piece.id).token, piece.id)
        await after.scaler.tick()
        assert [(one.id, one.state) for one in after.slices] == [(piece.id, SliceState.READY)]
    await platform.lose(piece.id)
    async with scaled(tmp_path, platform, [PAIRS]) as again:
        assert again.slices[0].state is SliceState.FAILED


async def test_a_worker_that_goes_is_not_given_work_again(tmp_path: Path):
    platform = MemoryPlatform(ManualClock(), end_delay=ENDING)
    async with scaled(tmp_path, platform, [PAIRS]) as here:
        await here.scaler.tick()
        await here.until(lambda: here.slices[0].state is SliceState.BOOTSTRAPPING)
        (piece,), root = here.slices, here.there.cluster("root")
        stays, goes = [
            await here.there.join(platform.order(piece.id).token, piece.id) for _ in range(PAIRS.machines)
        ]
        await root.drain(pb.DrainRequest(worker=stays.worker))
        await root.drain(pb.DrainRequest(worker=stays.worker, undo=True))
        await root.revoke(pb.RevokeRequest(worker=goes.worker))
        await platform.lose(piece.id)
        await here.until(lambda: here.slices[0].state is SliceState.FAILED)
        for one, why in ((stays, "is removed with its slice"), (goes, "was revoked")):
            with pytest.raises(Conflict, match=why) as refused:
                await root.drain(pb.DrainRequest(worker=one.worker, undo=True))
            assert refused.value.code == "iris.worker_goes"
        assert all(worker.draining for worker in here.there.parts.context.cluster.workers.values())


async def test_a_drained_slice_makes_way_for_another_when_its_tasks_are_gone(tmp_path: Path):
    clock = ManualClock()
    platform = MemoryPlatform(clock)
    quick = replace(PAIRS, scale_down_delay=ENDING)
    async with scaled(tmp_path, platform, [quick]) as here:
        here.there.parts.context.clock = clock
        await here.scaler.tick()
        await here.until(lambda: here.slices[0].state is SliceState.BOOTSTRAPPING)
        (old,), cluster = here.slices, here.there.parts.context.cluster
        joined = [await here.there.join(platform.order(old.id).token, old.id) for _ in range(PAIRS.machines)]
        job = await here.there.jobs("ada").submit(asking("/ada/job"))
        await here.there.started(job.id)
        for one in joined:
            await here.there.cluster("root").drain(pb.DrainRequest(worker=one.worker))
        await here.scaler.tick()
        clock.advance(LONG)
        await here.scaler.tick()
        assert here.slices[0].state is SliceState.READY, "its task runs on"
        (attempt,) = cluster.attempts.values()
        here.there.parts.lifecycle.end(attempt, ExitKind.EXIT, Outcome())
        await here.scaler.tick()
        clock.advance(ENDING)
        await here.scaler.tick()
        await here.until(lambda: not here.slices)
        await here.scaler.tick()
        assert [piece.id for piece in here.slices] != [old.id]
        assert len(here.slices) == 1


async def test_nothing_is_bought_for_a_job_that_was_cancelled_before_its_time_had_come(tmp_path: Path):
    clock = ManualClock()
    patient = replace(PAIRS, min_slices=0, scale_up_delay=ENDING)
    async with scaled(tmp_path, MemoryPlatform(clock), [patient]) as here:
        parts = here.there.parts
        parts.context.clock = clock
        passed = asyncio.Event()
        parts.scheduler.on_pass.add(passed.set)
        await here.there.jobs("ada").submit(asking("/ada/job"))
        await passed.wait()
        assert parts.scheduler.plan is not None
        passed.clear()
        woken = asyncio.Event()
        parts.context.wake.add(woken.set)
        await here.there.jobs("ada").cancel(pb.CancelRequest(job="/ada/job"))
        assert woken.is_set(), "the scheduler looks again when it likes to"
        await passed.wait()
        clock.advance(ENDING)
        await here.scaler.tick()
        assert not here.slices
