"""Mistakes that a control plane of machines is likely to have. Each is planted, and the laws must find it within a few seeds."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from neorion.capacity.gpu import Remedy
from neorion.capacity.provider import Intent, IntentId
from neorion.keel.sim import SimulationLimits, World, explore
from neorion.navarch.app.simulation.fake_scheduler import FakeScheduler
from neorion.navarch.app.simulation.runner import run
from neorion.navarch.controllers.agent_reports import AgentReports
from neorion.navarch.controllers.garbage_collection import GarbageCollector
from neorion.navarch.controllers.provisioning import Provisioner
from neorion.navarch.decide import repair
from neorion.navarch.decide.policy import Policy
from neorion.navarch.model import Health, Hold, Node
from neorion.navarch.ports import SchedulingStatus
from neorion.navarch.state import Journal
from tests.sim import navarch_scenes
from tests.sim.navarch_scenes import POLICIES, small_fleet

SEEDS = range(25)
LIMITS = SimulationLimits(steps=300_000)

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
Plant = Callable[[pytest.MonkeyPatch], None]


def terminate_first(patch: pytest.MonkeyPatch) -> None:
    """Gives the old node up before it has a successor."""

    def no_room(*_: object) -> bool:
        return False

    patch.setattr(repair, "can_surge", no_room)


def unbounded_budget(patch: pytest.MonkeyPatch) -> None:
    def admit(*_: object) -> None:
        return None

    patch.setattr(repair, "admit", admit)


def forgotten_intent(patch: pytest.MonkeyPatch) -> None:
    """Asks under another name whenever it asks again."""
    original = Provisioner._intent
    asked: list[int] = []

    def fresh(self: Provisioner, purchase: Any) -> Intent:
        asked.append(1)
        return replace(original(self, purchase), id=IntentId(f"buy-{len(asked)}"))

    patch.setattr(Provisioner, "_intent", fresh)


def nothing_durable(patch: pytest.MonkeyPatch) -> None:
    """Lets the world hear of what the store has not."""

    async def at_once(_: Journal) -> None:
        return

    patch.setattr(Journal, "wait_durable", at_once)


def application_errors_cost_nodes(patch: pytest.MonkeyPatch) -> None:
    usual = POLICIES["default"]
    harsh = tuple(
        replace(rule, result=Health.UNHEALTHY, remedy=Remedy.REPLACE, certain=True)
        if rule.name == "application-error"
        else rule
        for rule in usual.rules
    )
    patch.setattr(navarch_scenes, "POLICIES", {"default": Policy("default", harsh)})


def no_sweep(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_: GarbageCollector) -> None:
        return

    patch.setattr(GarbageCollector, "tick", nothing)


def uncordon_is_believed(patch: pytest.MonkeyPatch) -> None:
    """Takes the request to place work for work that is placed."""
    original = FakeScheduler.uncordon

    async def uncordon(self: FakeScheduler, node: Node) -> SchedulingStatus:
        await original(self, node)
        return SchedulingStatus(schedulable=True)

    patch.setattr(FakeScheduler, "uncordon", uncordon)


def one_witness(patch: pytest.MonkeyPatch) -> None:
    """Takes a dead agent for a dead machine."""

    def no_hold(*_: object) -> None:
        return None

    patch.setattr(repair, "silence_hold", no_hold)


def silent_holds(patch: pytest.MonkeyPatch) -> None:
    """Waits, and says nothing."""
    original = repair.admit_waiting

    def quietly(*args: Any) -> Iterator[Any]:
        return (one for one in original(*args) if not isinstance(one, Hold))

    patch.setattr(repair, "admit_waiting", quietly)


def writes_every_heartbeat(patch: pytest.MonkeyPatch) -> None:
    original = AgentReports.heartbeat

    def heartbeat(self: AgentReports, *args: Any, **options: Any) -> Any:
        node = original(self, *args, **options)
        self._writer.update_node(node)
        return node

    patch.setattr(AgentReports, "heartbeat", heartbeat)


@pytest.mark.parametrize(
    ("plant", "laws"),
    [
        (terminate_first, {"law.order"}),
        (unbounded_budget, {"law.budget", "navarch.over_budget"}),
        (forgotten_intent, {"law.stray", "law.calm"}),
        (nothing_durable, {"law.stray", "law.calm", "law.order"}),
        (application_errors_cost_nodes, {"law.innocent"}),
        (no_sweep, {"law.stray", "law.calm"}),
        (uncordon_is_believed, {"law.serving"}),
        (one_witness, {"law.innocent"}),
        (silent_holds, {"law.unexplained"}),
        (writes_every_heartbeat, {"law.idle"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_mistake_is_found(plant: Plant, laws: set[str], monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch)

    async def a_day(world: World) -> None:
        fleet = small_fleet(world.chance("fleet"))
        if plant is nothing_durable:
            # Only a control plane that dies loses what its store has not.
            fleet = replace(fleet, troubles=replace(fleet.troubles, kill_at_points=0.03))
        await run(world, fleet)

    failure = explore(a_day, SEEDS, limits=LIMITS, failures_max=1).first_failure
    assert failure is not None, "nobody noticed"
    assert any(law in str(failure.error) for law in laws), failure.error
