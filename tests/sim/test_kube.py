"""An operator in two replicas under every trouble: one writes at a time, all is as wanted in the end, and then nobody writes."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from neorion.keel.base import Duration
from neorion.keel.kube.control import LeaderLeaseTiming
from neorion.keel.kube.core import LEASE
from neorion.keel.sim import Crash, Delay, Fail, World, explore, seeds, simulate
from tests.keel.kube.control.widgets import LEASE_KEY, TENURE
from tests.sim.kube_world import REPLICAS, Truth, broken, people, start, unlike_wanted

LASTS_S = TENURE.lasts.seconds
POINTS = ("kube.watch.asked", "kube.watch.told", "kube.apply.asked", "kube.patch.done", "kube.replace.done")


async def cut_watches(world: World, _: Truth) -> None:
    world.faults.sometimes("kube.watch.told", 0.2, Fail(broken))
    await world.sleep(10)


async def forget(world: World, truth: Truth) -> None:
    """The server compacts again and again while watches break: they come back too late and list anew."""
    world.faults.sometimes("kube.watch.told", 0.1, Fail(broken))
    for _ in range(10):
        await world.sleep(world.rng.uniform(0, 2))
        truth.cluster.history.compact()


async def lose_answers(world: World, _: Truth) -> None:
    """Writes fail before they happen, and happen without anybody hearing of it."""
    world.faults.sometimes("kube.*.asked", 0.1, Fail(broken), host="api")
    world.faults.sometimes("kube.*.done", 0.1, Fail(broken), host="api")
    world.faults.sometimes("kube.*.done", 0.1, Delay(Duration.of(seconds=0.8)), host="api")
    await world.sleep(10)


async def pause(world: World, _truth: Truth) -> None:
    """A holder sleeps through the end of its lease, wakes, and must not go on where it was."""
    for _ in range(3):
        await world.sleep(world.rng.uniform(0, LASTS_S))
        victim = world.host(world.rng.choice(REPLICAS))
        victim.pause()
        await world.sleep(world.rng.uniform(LASTS_S / 2, 2 * LASTS_S))
        victim.resume()


async def crash(world: World, _truth: Truth) -> None:
    world.faults.at("kube.*", world.rng.randrange(1, 60), Crash(down=Duration.of(ms=500)), host="one")
    for _ in range(3):
        await world.sleep(world.rng.uniform(0, LASTS_S))
        victim = world.host(world.rng.choice((*REPLICAS, "api")))
        if victim.up:
            victim.crash()
        await world.sleep(world.rng.uniform(0, 2))
        if not victim.up:
            victim.restart()


async def drift(world: World, truth: Truth) -> None:
    for name in REPLICAS:
        host = world.host(name)
        host.drift(world.rng.uniform(0.9, 1.1))
        host.clock.jump(world.rng.uniform(-3600, 3600))
    await pause(world, truth)


Trouble = Callable[[World, Truth], Coroutine[Any, Any, None]]
TROUBLES: tuple[Trouble, ...] = (cut_watches, forget, lose_answers, pause, crash, drift)


async def operating(world: World, trouble: Trouble, tenure: LeaderLeaseTiming = TENURE) -> None:
    truth, api = start(world, tenure)
    async with anyio.create_task_group() as group:
        group.start_soon(people, world, api, 40)
        await trouble(world, truth)
    # One writer at a time, or the run would have ended. Now the troubles are over.
    world.faults.clear()
    await world.sleep(60)
    assert await unlike_wanted(api) == []
    truth.cluster.collect()
    await world.sleep(10)
    writes = truth.writes
    await world.sleep(60)
    assert truth.writes == writes, "writes in steady state"


@pytest.mark.parametrize("trouble", TROUBLES)
@seeds(12)
async def test_one_writes_at_a_time_all_converges_and_then_nobody_writes(
    world: World, trouble: Trouble
) -> None:
    await operating(world, trouble)


@seeds(20)
async def test_one_who_slept_does_not_take_a_lease_that_was_renewed_meanwhile(world: World) -> None:
    truth, _ = start(world, TENURE)

    def holder() -> str:
        return truth.cluster.entry(LEASE, LEASE_KEY).body["spec"]["holderIdentity"]

    await world.sleep(5)
    before = holder()
    waiting = world.host("two" if before.startswith("one") else "one")
    waiting.pause()
    await world.sleep(world.rng.uniform(LASTS_S, 3 * LASTS_S))
    waiting.resume()
    await world.sleep(LASTS_S)
    assert holder() == before


def test_a_holder_that_believes_in_its_lease_for_too_long_is_found_and_replays():
    # What the constructor refuses, forced upon it.
    tenure = replace(TENURE)
    object.__setattr__(tenure, "stop_after", TENURE.lasts * 3)
    scenario = partial(operating, trouble=pause, tenure=tenure)
    failure = explore(scenario, range(100), failures_max=1).first_failure
    assert failure is not None
    assert "kube.two_writers" in str(failure.error)
    assert simulate(scenario, failure.seed).digest == failure.digest


def test_the_scenarios_reach_every_fault_point():
    assert explore(partial(operating, trouble=lose_answers), range(2)).missed(POINTS) == []
