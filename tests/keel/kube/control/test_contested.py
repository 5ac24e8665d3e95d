"""An object that another controller changes after every repair: repairs become rare, and it is repaired when the other one ends."""

import anyio
import pytest

from neorion.keel.kube import MergePatch, ObjectKey
from neorion.keel.kube.core import CONFIG_MAP
from neorion.keel.kube.testing import MemoryApi, MemoryCluster
from neorion.keel.sim import World, simulate
from tests.contracts.kube_api import WIDGET
from tests.keel.kube.control.widgets import Surroundings, WidgetOperator, widget

pytestmark = pytest.mark.fault(51)

KEY = ObjectKey("default", "w")
HOUR_S, REPAIR_S_MAX = 3_600.0, 600.0


class Contest:
    """An operator, and another controller with its own idea of the size."""

    def __init__(self, world: World) -> None:
        self.cluster = MemoryCluster(world.clock)
        self.people = MemoryApi(self.cluster, world.clock, "people")
        self.operator = WidgetOperator(
            Surroundings(MemoryApi(self.cluster, world.clock, "operator"), world.clock, world.rng)
        )

    @property
    def size(self) -> str:
        entry = self.cluster.entries(CONFIG_MAP).get(KEY)
        return entry.body["data"]["size"] if entry else ""

    @property
    def repairs(self) -> int:
        return self.operator.writes["apply configmaps"]

    async def change_back(self) -> None:
        while True:
            if self.size not in ("", "other"):
                patch = MergePatch({"data": {"size": "other"}})
                await self.people.patch(CONFIG_MAP, KEY.name, patch, KEY.namespace)
            await self.cluster.history.news()

    async def until_size(self, size: str, most_s: float) -> None:
        with anyio.fail_after(most_s):
            while self.size != size:
                await self.cluster.history.news()


def test_repairs_become_rare_while_another_controller_changes_the_object_back():
    async def scenario(world: World) -> None:
        it = Contest(world)
        await it.people.create(WIDGET, widget(KEY.name, 1))
        async with anyio.create_task_group() as group:
            group.start_soon(it.operator.operator.run, anyio.Event())
            with anyio.move_on_after(HOUR_S):
                await it.change_back()
            # Four at once, ten with waits that double, and one every ten minutes.
            assert 10 < it.repairs < 25
            await it.until_size("1", REPAIR_S_MAX)
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_what_a_user_changes_meanwhile_is_applied_at_once():
    async def scenario(world: World) -> None:
        it = Contest(world)
        await it.people.create(WIDGET, widget(KEY.name, 1))
        async with anyio.create_task_group() as group:
            group.start_soon(it.operator.operator.run, anyio.Event())
            with anyio.move_on_after(HOUR_S):
                await it.change_back()
            await it.people.patch(WIDGET, KEY.name, MergePatch({"spec": {"size": 2}}), KEY.namespace)
            await it.until_size("2", 1)
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()


def test_repairs_now_and_then_are_made_at_once():
    async def scenario(world: World) -> None:
        it = Contest(world)
        await it.people.create(WIDGET, widget(KEY.name, 1))
        async with anyio.create_task_group() as group:
            group.start_soon(it.operator.operator.run, anyio.Event())
            await it.until_size("1", 1)
            for _ in range(20):
                await world.sleep(HOUR_S)
                patch = MergePatch({"data": {"size": "other"}})
                await it.people.patch(CONFIG_MAP, KEY.name, patch, KEY.namespace)
                await it.until_size("1", 1)
            group.cancel_scope.cancel()

    simulate(scenario, 1).check()
