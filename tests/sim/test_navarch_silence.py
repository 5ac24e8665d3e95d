"""Silent agents: nothing is done to a machine on one witness, and nothing at all when many fall silent together."""

import pytest

from neorion.keel.base import Duration
from neorion.keel.sim import SimulationLimits, World, seeds
from neorion.navarch.controllers.operator_actions import Requester
from neorion.navarch.model import Health, HoldReason, NodeState
from tests.sim.navarch_world import Fleet, fleet, pool

LONG = SimulationLimits(steps=20_000_000)
HOUR_S = 3_600


def holds(navarch: Fleet) -> set[HoldReason]:
    assert navarch.plane is not None
    return {hold.code for hold in navarch.plane.fleet.context.state.pool("training").holds}


def reboots(navarch: Fleet) -> list[int]:
    return [machine.reboots for machine in navarch.cloud.machines.values()]


def untouched(navarch: Fleet, size: int) -> bool:
    """Every node is where it was: nothing was cordoned, drained, rebooted or bought."""
    return (
        len(navarch.nodes(NodeState.ACTIVE)) == size
        and navarch.work.cordoned == set()
        and navarch.work.drained == {}
        and reboots(navarch) == [0] * size
    )


@pytest.mark.fault(39)
@seeds(1, limits=LONG)
async def test_a_killed_agent_costs_its_machine_nothing(world: World):
    """The kubelet still reports: the machine works, and only its agent is dead."""
    async with fleet(world, [pool(4)]) as navarch:
        await navarch.settled(4)
        silent = navarch.nodes()[0]
        navarch.kill_agent(silent)
        await world.sleep(HOUR_S)
        assert untouched(navarch, 4)
        assert holds(navarch) == {HoldReason.SECOND_WITNESS}
        assert navarch.plane is not None
        (hold,) = navarch.plane.fleet.context.state.pool("training").holds
        assert (hold.subject, hold.hint) == (silent.id, f"navarch node approve {silent.id}")
        assert "the scheduler still reaches its machine" in hold.sentence
        navarch.start_agent(silent)
        await navarch.until(lambda: {node.health for node in navarch.nodes()} == {Health.HEALTHY})
        await navarch.settled(4)
        assert untouched(navarch, 4)


@pytest.mark.fault(39)
@seeds(1, limits=LONG)
async def test_a_machine_that_the_scheduler_misses_too_is_rebooted(world: World):
    async with fleet(world, [pool(4)]) as navarch:
        await navarch.settled(4)
        silent = navarch.nodes()[0]
        navarch.kill_agent(silent)
        navarch.work.down.add(silent.id)
        await navarch.until(lambda: sum(reboots(navarch)) == 1)
        assert navarch.machine_of(silent).reboots == 1
        navarch.work.down.clear()
        navarch.start_agent(silent)
        await navarch.settled(4)


@pytest.mark.fault(39)
@seeds(1, limits=LONG)
async def test_without_another_witness_a_person_decides(world: World):
    async with fleet(world, [pool(4)]) as navarch:
        await navarch.settled(4)
        silent = navarch.nodes()[0]
        navarch.work.blind = True
        navarch.kill_agent(silent)
        await world.sleep(HOUR_S)
        assert untouched(navarch, 4)
        assert holds(navarch) == {HoldReason.SECOND_WITNESS}
        assert navarch.plane is not None
        await navarch.plane.orders.approve(silent.id, Requester("kim", "it is on fire"))
        await navarch.until(lambda: navarch.machine_of(silent).reboots == 1)


@pytest.mark.fault(39)
@pytest.mark.parametrize("size", [2, 6])
@seeds(1, limits=LONG)
async def test_agents_that_fall_silent_together_are_left_alone_until_a_person_releases_them(
    world: World, *, size: int
):
    """The network between is cut, so the scheduler misses the machines as well."""
    async with fleet(world, [pool(size)]) as navarch:
        await navarch.settled(size)
        before = {node.id for node in navarch.nodes()}
        navarch.work.down |= before
        world.links.cut(["machines"], ["controller"])
        await world.sleep(2 * HOUR_S)
        assert untouched(navarch, size)
        assert holds(navarch) == {HoldReason.MASS_SILENCE}
        navarch.control.restart()
        await world.sleep(600)
        assert untouched(navarch, size)
        assert navarch.plane is not None
        assert (
            navarch.plane.fleet.context.state.pool("training").holds[0].hint
            == "navarch pool release training"
        )
        await navarch.plane.orders.release("training", Requester("kim", "the rack lost power"))
        await navarch.until(lambda: bool(navarch.nodes(NodeState.DRAINING)))
        world.links.heal()
        navarch.work.down.clear()
        await navarch.settled(size)
        # What was begun for silence alone is called off by a word.
        assert {node.id for node in navarch.nodes()} == before
        assert reboots(navarch) == [0] * size
        assert navarch.work.cordoned == set()


@seeds(1, limits=LONG)
async def test_a_released_hold_says_nothing_of_what_falls_silent_later(world: World):
    async with fleet(world, [pool(6)]) as navarch:
        await navarch.settled(6)
        assert navarch.plane is not None
        await navarch.plane.orders.release("training", Requester("kim"))
        navarch.work.down |= {node.id for node in navarch.nodes()}
        world.links.cut(["machines"], ["controller"])
        await world.sleep(HOUR_S)
        assert untouched(navarch, 6)
        assert holds(navarch) == {HoldReason.MASS_SILENCE}


@pytest.mark.parametrize("wrong", [-2 * 24 * HOUR_S, 2 * 24 * HOUR_S], ids=["behind", "ahead"])
@seeds(1, limits=LONG)
async def test_a_fault_that_needs_two_sightings_is_seen_whatever_the_agents_clock_says(
    world: World, *, wrong: int
):
    async with fleet(world, [pool(2)]) as navarch:
        navarch.agents_clock_s = wrong
        await navarch.settled(2)
        sick = navarch.nodes()[0]
        for _ in range(2):
            navarch.strike(sick, 74)
            await world.sleep(Duration.of(minutes=10).seconds)
        assert navarch.plane is not None
        repairs = [one for one in navarch.plane.fleet.context.state.repairs.values() if one.node == sick.id]
        assert len(repairs) == 1
