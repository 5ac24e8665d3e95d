"""Events: counted at once, written seldom, and never in the way."""

import anyio

from neorion.keel.base import Deadline, Denied, Retry
from neorion.keel.kube.control import EventRecorder
from neorion.keel.kube.control.events import RECORDED_MAX
from neorion.keel.kube.core import EVENT
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.kube.testing.cluster import WriteRequest
from neorion.keel.sim import Fail, World, simulate
from tests.contracts.kube_api import WIDGET
from tests.keel.kube.control.widgets import widget


def test_a_thing_told_a_thousand_times_in_ten_minutes_is_one_event_written_a_dozen_times():
    async def scenario(world: World) -> None:
        cluster = MemoryCluster(world.clock)
        api = MemoryApi(cluster, world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = EventRecorder(api, "widgets", "one", world.clock)
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
        recorder = EventRecorder(api, "widgets", "one", world.clock)
        for number in range(2 * RECORDED_MAX):
            recorder.tell(WIDGET, about, f"Reason{number}", "So it is.")
        assert len(recorder._recorded) == RECORDED_MAX
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
        recorder = EventRecorder(api, "widgets", "one", world.clock)
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


def test_an_event_that_is_refused_for_good_is_not_tried_for_ever():
    async def scenario(world: World) -> None:
        cluster = MemoryCluster(world.clock)
        api = MemoryApi(cluster, world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = EventRecorder(api, "widgets", "one", world.clock)
        refused: list[WriteRequest] = []

        def admit(request: WriteRequest) -> None:
            if request.resource == EVENT.resource:
                refused.append(request)
                raise Denied("kube.denied", "The namespace is being terminated.")

        cluster.admit = admit
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            recorder.tell(WIDGET, about, "Gone", "It goes.")
            await world.sleep(3600)
            assert len(refused) == 1
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_an_event_whose_first_answer_was_lost_is_written_once_and_counted_on():
    async def scenario(world: World) -> None:
        cluster = MemoryCluster(world.clock)
        api = MemoryApi(cluster, world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = EventRecorder(api, "widgets", "one", world.clock)
        world.faults.at("kube.create.done", 1, Fail(lambda: Deadline("kube.lost", "Lost.")))
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            recorder.tell(WIDGET, about, "Stuck", "It waits.")
            await world.sleep(1)
            recorder.tell(WIDGET, about, "Stuck", "It still waits.")
            await world.sleep(3600)
            (event,) = (await api.list(EVENT)).items
            assert event.series is not None
            assert (event.series.count, event.note) == (2, "It still waits.")
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_a_long_note_is_cut_to_the_bytes_that_a_server_takes():
    async def scenario(world: World) -> None:
        api = MemoryApi(MemoryCluster(world.clock), world.clock)
        about = await api.create(WIDGET, widget("a", 1))
        recorder = EventRecorder(api, "widgets", "one", world.clock)
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.run)
            recorder.tell(WIDGET, about, "Stuck", "λ" * 1000)
            await world.sleep(1)
            (event,) = (await api.list(EVENT)).items
            assert event.note == "λ" * 512
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()
