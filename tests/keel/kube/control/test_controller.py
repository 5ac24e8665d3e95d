"""The wheel: what wakes it, what it does about failures, how it stops, and what a standby does meanwhile."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from neorion.keel.base import Conflict, Duration, Retry, Terminal
from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.control import Controller, InformerFactory, Operator, ReconcileOutcome, self_key
from neorion.keel.kube.control.controller import KEYS_PER_YIELD, WORKERS
from neorion.keel.kube.control.metrics import ControlMetrics
from neorion.keel.kube.core import CONFIG_MAP, LEASE
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.sim import World, simulate
from neorion.keel.telemetry.metrics import Metrics
from tests.contracts.kube_api import WIDGET, config
from tests.keel.kube.control.widgets import TENURE, Surroundings, WidgetOperator, widget

Reconcile = Callable[[ObjectKey], Awaitable[Duration | None]]


class Ends(list[ReconcileOutcome]):
    """Notes how reconciles ended."""

    def worked(self, controller: str, ending: ReconcileOutcome, waited: float, took: float) -> None:  # noqa: ARG002 -- a protocol's shape
        self.append(ending)

    def queued(self, controller: str, ready: int, failing: int) -> None: ...

    def unreadable(self, resource: str, count: int) -> None: ...

    def wrote(self, verb: str, resource: str) -> None: ...


class Stage:
    """One controller of Widgets, with whatever reconcile a test gives it."""

    def __init__(self, world: World, reconcile: Reconcile) -> None:
        self.world = world
        self.cluster = MemoryCluster(world.clock)
        self.api = MemoryApi(self.cluster, world.clock)
        self.informers = InformerFactory(self.api, world.clock, world.rng)
        self.widgets = self.informers.of(WIDGET)
        self.ends = Ends()
        self.controller = Controller("widgets", reconcile, world.clock, world.rng, self.ends)
        self.controller.watch(self.widgets, self_key)
        self.operator = Operator(self.informers, [self.controller])
        self.stopping = anyio.Event()


def played(reconcile: Reconcile, scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def scenario(world: World) -> None:
        stage = Stage(world, reconcile)
        async with anyio.create_task_group() as group:
            group.start_soon(stage.operator.run, stage.stopping)
            await scene(stage)
            stage.stopping.set()

    simulate(scenario, 1).check()


def test_a_controller_does_not_begin_with_what_it_only_follows():
    calls = list[ObjectKey]()

    async def reconcile(key: ObjectKey) -> Duration | None:
        calls.append(key)

    async def scenario(world: World) -> None:
        stage = Stage(world, reconcile)
        configs = stage.informers.of(CONFIG_MAP)
        stage.controller.watch(configs, self_key, begins=False)
        await stage.api.create(WIDGET, widget("begun", 1))
        await stage.api.create(CONFIG_MAP, config("default", "followed"))
        async with anyio.create_task_group() as group:
            group.start_soon(stage.operator.run, stage.stopping)
            await world.sleep(1)
            assert calls == [ObjectKey("default", "begun")]
            await stage.api.patch(CONFIG_MAP, "followed", MergePatch({"data": {"a": "b"}}), "default")
            await world.sleep(1)
            assert calls[1:] == [ObjectKey("default", "followed")]
            stage.stopping.set()

    simulate(scenario, 1).check()


def test_others_have_their_turn_while_a_controller_begins_with_thousands():
    async def reconcile(key: ObjectKey) -> Duration | None:
        del key

    async def scenario(world: World) -> None:
        stage, turns = Stage(world, reconcile), 0
        for number in range(KEYS_PER_YIELD * 5):
            await stage.api.create(WIDGET, widget(f"w{number}", 1))
        async with anyio.create_task_group() as group:
            group.start_soon(stage.operator.run, stage.stopping)
            while not stage.ends:
                await anyio.lowlevel.checkpoint()
                turns += stage.controller.running and not stage.ends
            stage.stopping.set()
        assert turns >= 5

    simulate(scenario, 1).check()


def test_a_reconcile_that_asks_to_be_woken_is_and_one_that_does_not_is_left_alone():
    calls = list[ObjectKey]()

    async def reconcile(key: ObjectKey) -> Duration | None:
        calls.append(key)
        return Duration.of(hours=1) if len(calls) < 3 else None

    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.world.sleep(3599)
        assert len(calls) == 1
        await stage.world.sleep(3600)
        assert len(calls) == 2
        await stage.world.sleep(24 * 3600)
        assert calls == [ObjectKey("default", "a")] * 3

    played(reconcile, scene)


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (Conflict("test.conflict", "It changed."), ReconcileOutcome.CONFLICT),
        (Retry("test.later", "Busy."), ReconcileOutcome.LATER),
        (ValueError("a bug"), ReconcileOutcome.CRASHED),
    ],
)
def test_a_failed_reconcile_is_tried_again_until_it_works(error: Exception, ending: ReconcileOutcome):
    left = [error] * 4

    async def reconcile(_key: ObjectKey) -> None:
        if left:
            raise left.pop()

    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.world.sleep(300)
        assert stage.ends == [ending] * 4 + [ReconcileOutcome.DONE]
        assert stage.operator.health() == []

    played(reconcile, scene)


def test_a_server_that_says_when_to_come_back_is_not_asked_before():
    async def reconcile(_key: ObjectKey) -> None:
        raise Retry("test.later", "Busy.", after=Duration.of(seconds=30))

    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.world.sleep(29)
        assert stage.ends == [ReconcileOutcome.LATER]
        assert [finding.code for finding in stage.operator.health()] == ["kube.keys_fail"]
        # Up to a tenth later.
        await stage.world.sleep(1 + 3)
        assert stage.ends == [ReconcileOutcome.LATER] * 2

    played(reconcile, scene)


def test_an_error_that_trying_again_cannot_heal_waits_for_a_change():
    async def reconcile(_key: ObjectKey) -> None:
        raise Terminal("test.hopeless", "No such size.")

    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.world.sleep(24 * 3600)
        assert stage.ends == [ReconcileOutcome.REFUSED]
        await stage.api.patch(WIDGET, "a", MergePatch({"spec": {"size": 2}}), "default")
        await stage.world.sleep(1)
        assert stage.ends == [ReconcileOutcome.REFUSED] * 2

    played(reconcile, scene)


def test_a_reconcile_that_hangs_is_given_up_and_tried_again():
    calls = list[ObjectKey]()

    async def reconcile(key: ObjectKey) -> None:
        calls.append(key)
        if len(calls) == 1:
            await anyio.sleep_forever()

    async def scene(stage: Stage) -> None:
        await stage.api.create(WIDGET, widget("a", 1))
        await stage.world.sleep(300)
        assert stage.ends == [ReconcileOutcome.CRASHED, ReconcileOutcome.DONE]

    played(reconcile, scene)


def test_keys_for_which_nothing_is_to_do_leave_everybody_else_their_turn():
    """Else a start over thousands of them would keep the lease from its renewal, and begin again and again."""
    done, in_a_row, longest = 0, 0, 0

    async def reconcile(_key: ObjectKey) -> None:
        nonlocal done, in_a_row, longest
        done, in_a_row = done + 1, in_a_row + 1
        longest = max(longest, in_a_row)

    async def heartbeat() -> None:
        nonlocal in_a_row
        while done < 500:
            await anyio.lowlevel.checkpoint()
            in_a_row = 0

    async def scenario(world: World) -> None:
        stage = Stage(world, reconcile)
        for number in range(500):
            await stage.api.create(WIDGET, widget(f"w{number}", 1))
        async with anyio.create_task_group() as group:
            group.start_soon(stage.operator.run, stage.stopping)
            await heartbeat()
            stage.stopping.set()

    simulate(scenario, 1).check()
    assert 1 < longest <= 2 * WORKERS


def test_a_stop_lets_what_is_in_hand_finish_and_begins_nothing_new():
    begun, ended = list[ObjectKey](), list[ObjectKey]()
    go_on = anyio.Event()

    async def reconcile(key: ObjectKey) -> None:
        begun.append(key)
        await go_on.wait()
        ended.append(key)

    async def scene(stage: Stage) -> None:
        for number in range(100):
            await stage.api.create(WIDGET, widget(f"w{number}", 1))
        await stage.world.sleep(1)
        stage.stopping.set()
        await stage.world.sleep(1)
        go_on.set()

    played(reconcile, scene)
    assert len(begun) == 32
    assert sorted(ended) == sorted(begun)


def test_an_operator_that_never_got_to_work_stops_at_once():
    async def scenario(world: World) -> None:
        cluster = MemoryCluster(world.clock)
        api = MemoryApi(cluster, world.clock)
        stopping = anyio.Event()
        holder, waiter = (
            WidgetOperator(Surroundings(api, world.clock, world.rng, name), tenure=TENURE)
            for name in ("holder", "waiter")
        )
        async with anyio.create_task_group() as group:
            group.start_soon(holder.operator.run, anyio.Event())
            await world.sleep(1)
            with anyio.fail_after(100):
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(waiter.operator.run, stopping)
                    await world.sleep(50)
                    assert waiter.operator.health() == []
                    stopping.set()
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_a_standby_has_warm_mirrors_and_goes_on_within_a_second_of_a_planned_hand_over():
    async def scenario(world: World) -> None:
        api = MemoryApi(MemoryCluster(world.clock), world.clock)
        first, second = (
            WidgetOperator(Surroundings(api, world.clock, world.rng, name), tenure=TENURE)
            for name in ("a", "b")
        )
        stopping = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(first.operator.run, stopping)
            await world.sleep(1)
            group.start_soon(second.operator.run, anyio.Event())
            for number in range(10):
                await api.create(WIDGET, widget(f"w{number}", number))
            await world.sleep(20)
            assert len(second.widgets) == len(second.configs) == 10
            assert second.writes.total() == 0
            await api.create(WIDGET, widget("late", 1))
            stopping.set()
            await world.sleep(1)
            assert (await api.get(LEASE, "widgets", "default")).spec.holder_identity == "b"
            assert (await api.get(WIDGET, "late", "default")).status.ready == 1
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_the_work_of_controllers_can_be_read_by_prometheus():
    metrics = Metrics()
    counting = ControlMetrics(metrics)
    counting.worked("widgets", ReconcileOutcome.CONFLICT, 0.01, 0.2)
    counting.queued("widgets", 3, 1)
    counting.wrote("apply", "configmaps")
    text = metrics.exposition().decode()
    assert 'neorion_controller_reconciles_total{controller="widgets",ending="conflict"} 1.0' in text
    assert 'neorion_controller_queue_depth{controller="widgets"} 3.0' in text
    assert 'neorion_kube_writes_total{resource="configmaps",verb="apply"} 1.0' in text
