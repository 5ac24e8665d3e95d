"""kill -9 at every point of a replacement, one after the other: it finishes once, and nothing is bought twice."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from neorion.keel.base import Duration
from neorion.keel.sim import Crash, SimulationLimits, World, simulate
from neorion.navarch.app.simulation.failure_modes import ILLS
from neorion.navarch.app.simulation.invariants import InvariantChecker
from neorion.navarch.app.simulation.scenario import FailureRates, Scenario
from neorion.navarch.app.simulation.simulated_fleet import SimulatedFleet
from neorion.navarch.model import PoolSpec, RepairStep
from neorion.navarch.model.spec import Offer, Scaling
from tests.sim.navarch_scenes import POLICIES

LIMITS = SimulationLimits(steps=300_000)
POINTS = (
    "navarch.buy.after",
    "navarch.buy.before",
    "navarch.drain.before",
    "navarch.end.after",
    "navarch.end.before",
    "navarch.journal.after",
    "navarch.journal.before",
    "navarch.mark.before",
    "navarch.tick.decided",
    "provider.call.sent",
    "provider.provision.done",
    "provider.terminate.done",
)
NODES = 2

# What was under way when a control plane was killed is a coroutine that nobody awaited; that is what killing means.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


def scene() -> Scenario:
    spec = PoolSpec(
        "training",
        (Offer("east", "gpu_8x_h100_sxm5", ("us-1",)),),
        scaling=Scaling(least=NODES, most=NODES),
    )
    calm = FailureRates(wear=0, bugs=0)
    return Scenario(
        {spec.name: spec},
        POLICIES,
        calm,
        boot=Duration.of(seconds=20),
        stop=Duration.of(seconds=5),
        leaves_within=Duration.of(seconds=10),
    )


def replacement(before: Callable[[World], None]) -> Callable[[World], Coroutine[Any, Any, dict[str, int]]]:
    """How often each point was passed between the fault and the end of the replacement."""

    async def scenario(world: World) -> dict[str, int]:
        stage = SimulatedFleet(world, scene())
        laws = InvariantChecker(stage)
        stage.start()
        passes: dict[str, int] = {}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(laws.run)
            assert await stage.settled(Duration.of(minutes=30))
            passed = dict(world.faults.hits)
            before(world)
            sick = next(iter(stage.crowd.members.values()))
            stage.storm.strike(sick, ILLS["faulty-gpu"])
            assert await stage.settled(Duration.of(hours=2))
            assert stage.fleet is not None
            repairs = [
                one
                for one in stage.fleet.context.state.repairs.values()
                if one.step is not RepairStep.CANCELLED
            ]
            assert [(one.node, one.step) for one in repairs] == [(sick.node, RepairStep.DONE)]
            passes = {name: count - passed.get(name, 0) for name, count in world.faults.hits.items()}
            # Nobody comes back for more, and nobody is forgotten.
            await world.sleep(1_200)
            assert list(stage.clouds[0].bought.values()) == [1] * (NODES + 1)
            assert len(stage.clouds[0].alive()) == NODES
            tasks.cancel_scope.cancel()
        return passes

    return scenario


@pytest.mark.parametrize("name", POINTS)
def test_killed_at_any_pass_of_a_point_a_replacement_finishes_once(name: str):
    passes = simulate(replacement(lambda _: None), 0, limits=LIMITS).check()[name]
    assert passes
    for hit in range(1, passes + 1):

        def crash(world: World, hit: int = hit) -> None:
            world.faults.at(name, hit, Crash(down=Duration.of(seconds=3)), host="controller")

        simulate(replacement(crash), 0, limits=LIMITS).check(f"{name} at pass {hit}")
