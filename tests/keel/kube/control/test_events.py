"""Events: counted at once, written seldom, and never in the way."""

import anyio

from neorion.keel.base import Retry
from neorion.keel.kube.control import Recorder
from neorion.keel.kube.control.events import TOLD_MAX
from neorion.keel.kube.core import EVENT
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.sim import Fail, World, simulate
from tests.contracts.kube_api import WIDGET
from tests.keel.kube.control.widgets import widget


def test_a_thing_told_a_thousand_times_in_ten_minutes_is_one_event_written_a_dozen_times():
    async def scenario(world: World) -> None:
        cluster = MemoryCluster(world.clock)
        api = MemoryApi(cluster, world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = Recorder(api, "widgets", "one", world.clock)
        writes = cluster.writes.total()
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            for number in range(1000):
                recorder.tell(WIDGET, about, "Stuck", f"It waits, {number}.", warning=True)
                await world.sleep(0.6)
            await world.sleep(120)
            (event,) = (await api.list(EVENT)).items
            assert event.series is not None
            assert event.series.count == 1000
            assert event.note == "It waits, 999."
            assert cluster.writes.total() - writes <= 13
            # Servers drop Events after an hour; what is told then begins a new one.
            await api.delete(EVENT, event.meta.name, event.meta.namespace)
            recorder.tell(WIDGET, about, "Stuck", "Again.", warning=True)
            await world.sleep(120)
            (event,) = (await api.list(EVENT)).items
            assert event.note == "Again."
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_a_storm_of_different_events_is_written_slowly_and_remembered_in_bounds():
    async def scenario(world: World) -> None:
        cluster = MemoryCluster(world.clock)
        api = MemoryApi(cluster, world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = Recorder(api, "widgets", "one", world.clock)
        for number in range(2 * TOLD_MAX):
            recorder.tell(WIDGET, about, f"Reason{number}", "So it is.")
        assert len(recorder._told) == TOLD_MAX
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            await world.sleep(10)
            assert 150 <= len((await api.list(EVENT)).items) <= 201
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_a_server_that_refuses_events_does_not_stop_the_recorder():
    async def scenario(world: World) -> None:
        api = MemoryApi(MemoryCluster(world.clock), world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = Recorder(api, "widgets", "one", world.clock)
        world.faults.at("kube.create.asked", 1, Fail(lambda: Retry("test.down", "Down.")))
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            recorder.tell(WIDGET, about, "Stuck", "It waits.")
            await world.sleep(1)
            assert (await api.list(EVENT)).items == []
            await world.sleep(120)
            assert len((await api.list(EVENT)).items) == 1
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()
