"""One run from its first purchase to the calm after the storm."""

import anyio

from neorion.keel.base import Duration
from neorion.keel.sim import SimulationLimits, World, simulate
from neorion.navarch.app.simulation.invariants import Laws
from neorion.navarch.app.simulation.measurements import Ledger, Result
from neorion.navarch.app.simulation.scenario import Scene
from neorion.navarch.app.simulation.simulated_fleet import Stage

# Bare metal takes half an hour; a fleet that is not up by then is not coming.
_START = Duration.of(hours=3)
# A large fleet takes some hundred thousand steps a day; what takes more than this is caught in a circle.
_STEPS_MAX = 1_000_000_000


async def play(world: World, scene: Scene) -> Stage:
    """Builds the fleet, lets the storm loose on it, and sees that everything comes right again."""
    stage = Stage(world, scene)
    await _played(stage, None)
    return stage


def measured(scene: Scene, seed: int) -> Result:
    """The same, measured from the moment at which the fleet has come up. A law that breaks ends the run, and is told."""
    ledgers: list[Ledger] = []

    async def scenario(world: World) -> None:
        stage = Stage(world, scene)
        ledgers.append(Ledger(stage))
        await _played(stage, ledgers[0])

    limits = SimulationLimits(_STEPS_MAX, _START + scene.span + scene.calm + Duration.of(hours=24))
    outcome = simulate(scenario, seed, limits=limits)
    return ledgers[0].result("" if outcome.ok else str(outcome.error))


async def _played(stage: Stage, ledger: Ledger | None) -> None:
    laws = Laws(stage)
    stage.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(laws.run)
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
