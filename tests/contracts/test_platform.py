"""What every platform promises. Machines are values, real processes, or nodes of a cluster in memory."""

import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
import pytest

from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.local import LocalPlatform, LocalSettings
from neorion.iris.model import Resources, SliceId, SliceState
from neorion.iris.ports import Platform, SliceRequest, SliceStatus
from neorion.iris.testing.memory_platform import MemoryPlatform
from neorion.keel.base import Duration, Invalid, NoCapacity, NotFound, QuotaExceeded
from tests.iris.kubernetes_stage import KubernetesStage
from tests.iris.manual_clock import ManualClock

pytestmark = pytest.mark.anyio

STANDIN = Path(__file__).parent.parent / "iris" / "standin.py"
SECOND = Duration.of(seconds=1)
# A wait that fails ends the test in time for its processes to be cleaned up.
PATIENCE_S = 120


class Breakable(Platform, Protocol):
    """A platform whose machines can be taken away."""

    async def lose(self, piece: SliceId) -> None: ...


class Stage(Protocol):
    """Where a platform is opened, closed and opened again by a next controller."""

    @property
    def clock(self) -> ManualClock: ...

    def open(
        self, behaviours: Mapping[str, FaultProfile] | None = None
    ) -> AbstractAsyncContextManager[Breakable]: ...


class MemoryStage:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self._cloud = MemoryPlatform(self.clock, controller="here:1")

    @asynccontextmanager
    async def open(
        self, behaviours: Mapping[str, FaultProfile] | None = None
    ) -> AsyncGenerator[Breakable, None]:
        for group, behaviour in (behaviours or {}).items():
            self._cloud.set_faults(group, behaviour)
        yield self._cloud


class LocalStage:
    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self._folder = folder
        self._fifo = folder / "fifo"
        os.mkfifo(self._fifo)
        # Held open, so that no stand-in waits for somebody to hear it.
        self._ear = os.open(self._fifo, os.O_RDWR)

    def open(self, behaviours: Mapping[str, FaultProfile] | None = None) -> LocalPlatform:
        variables = {"PATH": os.environ["PATH"]}
        settings = LocalSettings(self._folder / "state", "here:1", variables, behaviours or {})
        command = [sys.executable, "-ISE", str(STANDIN), "serve", str(self._fifo)]
        return LocalPlatform(settings, lambda _: command, self.clock)

    async def close(self) -> None:
        async with self.open() as platform:
            await platform.shutdown()
        os.close(self._ear)


@asynccontextmanager
async def made(platform: str, folder: Path) -> AsyncGenerator[Stage, None]:
    match platform:
        case "memory":
            yield MemoryStage()
        case "local":
            local = LocalStage(folder)
            yield local
            await local.close()
        case _:
            simulated = KubernetesStage(pools=platform == "coreweave")
            async with simulated.running():
                yield simulated


@pytest.fixture(params=["memory", "local", "kubernetes", "coreweave"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stage, None]:
    async with made(request.param, tmp_path) as one:
        yield one


@pytest.fixture(params=["memory", "local", "coreweave"])
async def buying(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stage, None]:
    """Platforms that say at once when there is no machine. Pods of a cluster that buys none wait for one."""
    async with made(request.param, tmp_path) as one:
        yield one


def order(name: str = "a", group: str = "h100", machines: int = 1) -> SliceRequest:
    return SliceRequest(
        id=SliceId.made_of(name),
        group=group,
        machines=machines,
        shape=Resources(cpu_milli=8000, memory=2**34, gpus=8, gpu_variant="H100"),
        attributes=(("zone", "here"),),
        controller="here:1",
        token="s3cret",
    )


async def until(changes: AsyncIterator[SliceStatus], piece: SliceId, state: SliceState) -> SliceStatus:
    with anyio.fail_after(PATIENCE_S):
        async for seen in changes:
            if seen.id == piece and seen.state is state:
                return seen
    pytest.fail(f"the platform closed before {piece} was {state}")


async def until_gone(platform: Platform, changes: AsyncIterator[SliceStatus], piece: SliceId) -> None:
    """A change is a reason to look again; the last one of a slice comes when it is gone."""
    while piece in [seen.id for seen in await platform.list_all_slices()]:
        await until(changes, piece, SliceState.DELETING)


async def test_a_slice_is_creating_and_then_has_all_its_machines(stage: Stage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=3))
        seen = await until(changes, order().id, SliceState.BOOTSTRAPPING)
        assert len(set(seen.hosts)) == 3
        assert await platform.describe(order().id) == seen
        assert seen.group == "h100"


async def test_a_slice_asked_for_twice_is_made_once(stage: Stage):
    async with stage.open({"h100": FaultProfile(quota=1)}) as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        await platform.create_slice(order())
        seen = await until(changes, order().id, SliceState.BOOTSTRAPPING)
        await platform.create_slice(order())
        assert await platform.list_all_slices() == [seen]


async def test_slices_are_listed_by_group_and_all_together(stage: Stage):
    async with stage.open() as platform:
        for name, group in (("a", "h100"), ("b", "cpu"), ("c", "h100")):
            await platform.create_slice(order(name, group))
        assert [seen.id for seen in await platform.list_slices("h100")] == ["slice-a", "slice-c"]
        assert [seen.id for seen in await platform.list_all_slices()] == ["slice-a", "slice-b", "slice-c"]
        assert await platform.list_slices("other") == []


async def test_an_order_that_makes_no_sense_is_refused(stage: Stage):
    async with stage.open() as platform:
        for wrong in (order("../up"), order(machines=0)):
            with pytest.raises(Invalid) as refused:
                await platform.create_slice(wrong)
            assert refused.value.code == "iris.slice_order"
        assert await platform.list_all_slices() == []


async def test_an_unknown_slice_is_not_found_but_may_be_terminated(stage: Stage):
    async with stage.open() as platform:
        with pytest.raises(NotFound) as missing:
            await platform.describe(SliceId("slice-x"))
        assert missing.value.code == "iris.no_slice"
        await platform.terminate(SliceId("slice-x"))


async def test_a_terminated_slice_is_deleting_and_then_gone(stage: Stage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
        await platform.terminate(order().id)
        await platform.terminate(order().id)
        await until_gone(platform, changes, order().id)
        assert await platform.list_all_slices() == []
        with pytest.raises(NotFound):
            await platform.describe(order().id)
        await platform.terminate(order().id)


async def test_a_slice_boots_when_its_delay_is_over_and_not_before(stage: Stage):
    async with stage.open({"h100": FaultProfile(boot_delay=SECOND * 30)}) as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        stage.clock.advance(SECOND * 29)
        assert (await platform.describe(order().id)).state is SliceState.CREATING
        stage.clock.advance(SECOND)
        await until(changes, order().id, SliceState.BOOTSTRAPPING)


async def test_a_slice_that_is_stuck_never_boots_and_can_be_terminated(stage: Stage):
    async with stage.open({"h100": FaultProfile(stuck=1)}) as platform:
        changes = platform.changes()
        await platform.create_slice(order("a"))
        await platform.create_slice(order("b"))
        await until(changes, order("b").id, SliceState.BOOTSTRAPPING)
        stage.clock.advance(SECOND * 3600)
        assert (await platform.describe(order("a").id)).state is SliceState.CREATING
        await platform.terminate(order("a").id)
        await until_gone(platform, changes, order("a").id)


async def test_a_lost_machine_is_told_and_fails_its_slice(stage: Stage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=2))
        hosts = (await until(changes, order().id, SliceState.BOOTSTRAPPING)).hosts
        await platform.lose(order().id)
        seen = await until(changes, order().id, SliceState.FAILED)
        assert seen.hosts == hosts[1:]
        assert hosts[0] in seen.message


async def test_a_machine_is_lost_after_the_time_it_was_given(stage: Stage):
    fate = FaultProfile(boot_delay=SECOND, lost_after=SECOND * 10)
    async with stage.open({"h100": fate}) as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        stage.clock.advance(SECOND)
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
        stage.clock.advance(SECOND * 10)
        await until(changes, order().id, SliceState.FAILED)


async def test_quota_is_refused_by_its_scope_and_comes_back_with_a_slice_that_goes(stage: Stage):
    async with stage.open({"h100": FaultProfile(quota=1)}) as platform:
        changes = platform.changes()
        await platform.create_slice(order("a"))
        with pytest.raises(QuotaExceeded) as full:
            await platform.create_slice(order("b"))
        assert (full.value.code, full.value.scope) == ("iris.quota", "h100")
        await platform.create_slice(order("c", "cpu"))
        await platform.terminate(order("a").id)
        await until_gone(platform, changes, order("a").id)
        await platform.create_slice(order("b"))


async def test_capacity_that_is_missing_is_refused_and_may_be_there_the_next_time(buying: Stage):
    async with buying.open({"h100": FaultProfile(no_capacity=2)}) as platform:
        for _ in range(2):
            with pytest.raises(NoCapacity) as none:
                await platform.create_slice(order())
            assert (none.value.code, none.value.scope) == ("iris.no_capacity", "h100")
            assert await platform.list_all_slices() == []
        await platform.create_slice(order())


async def test_a_next_controller_finds_the_slices_and_hears_of_them(stage: Stage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=2))
        before = await until(changes, order().id, SliceState.BOOTSTRAPPING)
    async with stage.open() as platform:
        changes = platform.changes()
        assert await platform.list_all_slices() == [before]
        await platform.create_slice(order(machines=2))
        await platform.lose(order().id)
        await until(changes, order().id, SliceState.FAILED)
        await platform.terminate(order().id)
        await until_gone(platform, changes, order().id)


async def test_a_next_controller_boots_what_the_last_one_asked_for(stage: Stage):
    slow = {"h100": FaultProfile(boot_delay=SECOND * 30)}
    async with stage.open(slow) as platform:
        await platform.create_slice(order())
    stage.clock.advance(SECOND * 20)
    async with stage.open(slow) as platform:
        changes = platform.changes()
        assert (await platform.describe(order().id)).state is SliceState.CREATING
        stage.clock.advance(SECOND * 10)
        await until(changes, order().id, SliceState.BOOTSTRAPPING)


async def test_a_next_controller_leaves_stuck_what_was_stuck(stage: Stage):
    async with stage.open({"h100": FaultProfile(stuck=1)}) as platform:
        await platform.create_slice(order("a"))
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order("b"))
        await until(changes, order("b").id, SliceState.BOOTSTRAPPING)
        assert (await platform.describe(order("a").id)).state is SliceState.CREATING


async def test_shutdown_leaves_nothing(stage: Stage):
    async with stage.open({"cpu": FaultProfile(boot_delay=SECOND)}) as platform:
        changes = platform.changes()
        for name, group in (("a", "h100"), ("b", "h100"), ("c", "cpu")):
            await platform.create_slice(order(name, group))
        await until(changes, order("b").id, SliceState.BOOTSTRAPPING)
        await platform.shutdown()
        assert await platform.list_all_slices() == []
    async with stage.open() as platform:
        assert await platform.list_all_slices() == []


async def test_everybody_who_listens_hears_of_each_slice_at_its_latest(stage: Stage):
    async with stage.open() as platform:
        quick, slow = platform.changes(), platform.changes()
        for name in ("a", "b"):
            await platform.create_slice(order(name))
            await until(quick, order(name).id, SliceState.BOOTSTRAPPING)
        heard = [await anext(slow), await anext(slow)]
        assert {(seen.id, seen.state) for seen in heard} == {
            (order(name).id, SliceState.BOOTSTRAPPING) for name in ("a", "b")
        }


async def test_the_controller_is_found_and_reached(stage: Stage):
    async with stage.open() as platform:
        assert platform.discover_controller() == "here:1"
        async with platform.tunnel("here:1") as address:
            assert address == "here:1"
