"""Machines that start anew while they are given work: what they began and have forgotten is not begun again."""

from functools import partial

import pytest

from neorion.iris.testing.memory_runtime import MemoryRuntime
from neorion.keel.sim import World, explore, seeds
from tests.sim.iris_world import Iris
from tests.sim.test_iris import life, some


async def reboots(cluster: Iris) -> None:
    """Of machines whose reports were lost just before: they have begun what they could tell nobody of."""
    world = cluster.world
    for _ in range(4):
        machine = some(cluster)
        world.links.cut([machine.daemon.name], ["controller"])
        await world.sleep(world.rng.uniform(0.1, 2.0))
        machine.daemon.crash()
        machine.engine.crash()
        await world.sleep(0.1)
        world.links.heal()
        machine.runtime.reboot(forgetful=True)
        machine.engine.restart()
        machine.daemon.restart()
        await world.sleep(world.rng.uniform(0, 1))


@seeds(40)
async def test_no_attempt_begins_twice_however_often_machines_start_anew(world: World) -> None:
    await life(world, reboots)


def test_a_machine_that_takes_itself_for_the_old_one_is_found_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(MemoryRuntime, "boot", "always the same")
    failure = explore(partial(life, season=reboots), range(100), failures_max=1).first_failure
    assert failure is not None
    assert "iris.ran_twice" in str(failure.error)
