"""One run from its first purchase to the calm after the storm."""

import anyio

from neorion.keel.base import Duration
from neorion.keel.sim import SimulationLimits, World, simulate
from neorion.navarch.app.simulation.invariants import InvariantChecker
from neorion.navarch.app.simulation.measurements import RunRecorder, RunResult
from neorion.navarch.app.simulation.operator import SimulatedOperator
from neorion.navarch.app.simulation.scenario import Scenario
from neorion.navarch.app.simulation.simulated_fleet import SimulatedFleet

# Bare metal takes half an hour; a fleet that is not up by then is not coming.
_START = Duration.of(hours=3)
# A large fleet takes some hundred thousand steps a day; what takes more than this is caught in a circle.
_STEPS_MAX = 1_000_000_000


async def run(world: World, scene: Scenario) -> SimulatedFleet:
    """Builds the fleet, lets the storm loose on it, and sees that everything comes right again."""
    stage = SimulatedFleet(world, scene)
    await _run(stage, None)
    return stage


def run_measured(scene: Scenario, seed: int) -> RunResult:
    """The same, measured from the moment at which the fleet has come up. A law that breaks ends the run, and is told."""
    ledgers: list[RunRecorder] = []

    async def scenario(world: World) -> None:
        stage = SimulatedFleet(world, scene)
        ledgers.append(RunRecorder(stage))
        await _run(stage, ledgers[0])

    limits = SimulationLimits(_STEPS_MAX, _START + scene.span + scene.calm + Duration.of(hours=24))
    outcome = simulate(scenario, seed, limits=limits)
    return ledgers[0].result("" if outcome.ok else str(outcome.error))


async def _run(stage: SimulatedFleet, ledger: RunRecorder | None) -> None:
    laws = InvariantChecker(stage)
    stage.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(laws.run)
        tasks.start_soon(SimulatedOperator(stage).run)
        await stage.settled(_START)
        if ledger is not None:
            tasks.start_soon(ledger.run)
        with anyio.move_on_after(stage.scene.span.seconds):
            await stage.storm.run()
            await anyio.sleep_forever()
        stage.storm.clear()
        control = stage.world.host("controller")
        if not control.up:
            control.restart()
        await stage.settled(stage.scene.calm)
        await laws.settled()
        # The law that was found broken last is told before the end.
        await stage.world.sleep(1)
        tasks.cancel_scope.cancel()
