"""One run from its first purchase to the calm after the storm."""

import anyio

from neorion.keel.base import Duration
from neorion.keel.sim import World
from neorion.navarch.app.simulation.laws import Laws
from neorion.navarch.app.simulation.scene import Scene
from neorion.navarch.app.simulation.stage import Stage

# Bare metal takes half an hour; a fleet that is not up by then is not coming.
_START = Duration.of(hours=3)


async def play(world: World, scene: Scene) -> Stage:
    """Builds the fleet, lets the storm loose on it, and sees that everything comes right again."""
    stage = Stage(world, scene)
    laws = Laws(stage)
    stage.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(laws.run)
        await stage.settled(_START)
        with anyio.move_on_after(scene.span.seconds):
            await stage.storm.run()
        stage.storm.clear()
        control = world.host("controller")
        if not control.up:
            control.restart()
        await stage.settled(scene.calm)
        await laws.settled()
        # The law that was found broken last is told before the end.
        await world.sleep(1)
        tasks.cancel_scope.cancel()
    return stage
