"""What navarch must show, on fake clouds under virtual time: one fault, many faults, and faults of its own."""

from typing import Any

import pytest

from neorion.capacity.fake import FakeCloudOptions
from neorion.keel.base import Duration, Instant
from neorion.keel.sim import Crash, SimulationLimits, World, explore, seeds
from neorion.navarch.decide import explain_pool
from neorion.navarch.decide.budget import begun
from neorion.navarch.model import Health, NodeState, RepairStep
from neorion.navarch.model.spec import Budget, CountOrPercent, HealthRules
from tests.sim.navarch_world import Fleet, fleet, pool

LONG = SimulationLimits(steps=20_000_000)


def events_of(story: list[Any]) -> dict[str, Instant]:
    """When each kind of line was told first."""
    found: dict[str, Instant] = {}
    for event, line in story:
        found.setdefault(line.event, event.at)
    return found


@seeds(3, limits=LONG)
async def test_xid_79_on_one_node_brings_one_replacement_in_the_safe_order(world: World):
    async with fleet(world, [pool(2)]) as navarch:
        await navarch.settled(2)
        sick = navarch.nodes()[0]
        struck = world.clock.now()
        navarch.strike(sick, 79)
        await navarch.until(lambda: sick.id not in [node.id for node in navarch.nodes()])
        await navarch.settled(2)

        assert len(navarch.cloud.bought) == 3
        at = events_of(await navarch.story(sick.id))
        order = [
            at[event]
            for event in (
                "health.unhealthy",
                "node.cordoned",
                "repair.buying",
                "repair.successor",
                "repair.draining",
                "node.drained",
                "node.terminating",
                "node.terminated",
            )
        ]
        assert order == sorted(order)
        assert at["node.cordoned"].since(struck) < Duration.of(seconds=1)
        (successor,) = [node for node in navarch.nodes() if node.born > struck]
        assert successor.served is not None
        assert successor.served <= at["repair.draining"]
        assert at["node.terminating"] >= navarch.work.drained[sick.id]


@seeds(1, limits=LONG)
async def test_xid_13_on_twenty_nodes_costs_no_node_and_is_explained_once(world: World):
    async with fleet(world, [pool(20)]) as navarch:
        await navarch.settled(20)
        before = {node.id for node in navarch.nodes()}
        for node in navarch.nodes():
            navarch.strike(node, 13)
        await world.sleep(120)
        assert {node.id for node in navarch.nodes(NodeState.ACTIVE)} == before
        assert navarch.plane is not None
        assert navarch.plane.fleet.context.state.repairs == {}
        assert navarch.work.cordoned == set()
        context = navarch.plane.fleet.context
        spec = context.specs["training"]
        told = explain_pool(
            context.state.view(spec, context.started), navarch.plane.fleet.plan(spec), world.clock.now()
        )
        (sentence,) = [one for one in told if "XID 13" in one]
        assert "20 nodes" in sentence
        assert "no node is at fault" in sentence
        lines = [line for _, line in await navarch.story("pool/training") if line.event == "incident"]
        assert len(lines) == 1


@seeds(3, limits=LONG)
async def test_a_fault_is_cordoned_and_an_incident_told_long_before_the_wheel_turns_by_itself(world: World):
    async with fleet(world, [pool(4)]) as navarch:
        await navarch.settled(4)
        sick, *others = navarch.nodes()
        navarch.strike(sick, 79)
        for node in others:
            navarch.strike(node, 13)
        await world.sleep(3)
        assert sick.id in navarch.work.cordoned
        told = [line for _, line in await navarch.story("pool/training") if line.event == "incident"]
        assert len(told) == 1


@seeds(3, limits=LONG)
async def test_work_is_restarted_where_a_policy_says_so_and_that_costs_no_node_however_often(world: World):
    rules = HealthRules(policy="restarts")
    async with fleet(world, [pool(3, health=rules)]) as navarch:
        await navarch.settled(3)
        sick = navarch.nodes()[0]
        for times in (1, 2):
            navarch.strike(sick, 13)
            await world.sleep(60)
            await navarch.settled(3)
            told = [line.event for _, line in await navarch.story(sick.id)]
            assert told.count("node.drained") == times
            # A node that was just treated is given time before the next.
            await world.sleep(1_800)
        navarch.strike(sick, 13)
        await world.sleep(3_600)
        assert {node.state for node in navarch.nodes()} == {NodeState.ACTIVE}
        assert navarch.plane is not None
        holds = navarch.plane.fleet.context.state.pool("training").holds
        assert [(hold.code.value, hold.subject) for hold in holds] == [("attempts", sick.id)]
        assert len(navarch.cloud.bought) == 3


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "after a restart"])
@seeds(3, limits=LONG)
async def test_whoever_is_turned_away_after_a_lost_answer_buys_no_second_machine(
    world: World, *, killed: bool
):
    async with fleet(world, [pool(1)], FakeCloudOptions(lost=1.0)) as navarch:
        await navarch.until(lambda: bool(navarch.cloud.machines))
        navarch.cloud.behaviour.denied = True
        if killed:
            navarch.control.restart()
        await navarch.until(lambda: "denied" in navarch.troubles())
        await world.sleep(240)
        navarch.cloud.behaviour.lost, navarch.cloud.behaviour.denied = 0.0, False
        await navarch.settled(1)
        assert list(navarch.cloud.bought.values()) == [1]
        assert navarch.troubles() == set()


@seeds(1, limits=LONG)
async def test_an_applications_error_costs_no_node_whatever_the_rule_says_and_is_forgotten_in_time(
    world: World,
):
    rules = HealthRules(policy="harsh", window=Duration.of(hours=2))
    async with fleet(world, [pool(3, health=rules)]) as navarch:
        await navarch.settled(3)
        before = {node.id for node in navarch.nodes()}
        sick = navarch.nodes()[0]
        for _ in range(4):
            navarch.strike(sick, 13)
            await world.sleep(3_600)
        assert {node.id for node in navarch.nodes(NodeState.ACTIVE)} == before
        assert len(navarch.cloud.bought) == 3
        said = [line.sentence for _, line in await navarch.story(sick.id)]
        assert any("never costs a node: restart_workload instead of replace" in one for one in said)
        await world.sleep(2 * 3_600)
        assert {node.health for node in navarch.nodes()} == {Health.HEALTHY}


@seeds(1, limits=LONG)
async def test_a_rack_of_twenty_is_held_by_the_budget_and_replaced_at_its_pace(world: World):
    rules = HealthRules(budgets=(Budget(CountOrPercent(count=4)),))
    async with fleet(world, [pool(40, spares=3, health=rules)]) as navarch:
        await navarch.settled(40)
        await navarch.until(lambda: len(navarch.nodes(NodeState.SPARE)) == 3)
        spares = {node.id for node in navarch.nodes(NodeState.SPARE)}
        rack = navarch.nodes(NodeState.ACTIVE)[:20]
        for node in rack:
            navarch.strike(node, 79)
        await world.sleep(60)
        # So many at once look like one cause: nothing is touched before that is clear.
        assert len(navarch.nodes(NodeState.ACTIVE)) == 40
        holds = (
            {hold.code.value for hold in navarch.plane.fleet.context.state.pool("training").holds}
            if navarch.plane
            else set()
        )
        assert holds == {"common_cause"}

        at_once = 0
        gone = {node.id for node in rack}

        def all_replaced() -> bool:
            nonlocal at_once
            if navarch.plane is not None:
                repairs = navarch.plane.fleet.context.state.repairs.values()
                at_once = max(at_once, sum(begun(repair) for repair in repairs))
            return not gone & {node.id for node in navarch.nodes()}

        await navarch.until(all_replaced, 4 * 3_600)
        await navarch.settled(40)
        assert at_once == 4
        assert spares <= {node.id for node in navarch.nodes(NodeState.ACTIVE)}
        assert len(navarch.nodes(NodeState.SPARE)) == 3
        # Forty and three at first, twenty in the place of the rack: nobody was bought for nothing.
        assert len(navarch.cloud.bought) == 40 + 3 + 20


async def _replace_one(world: World) -> None:
    async with fleet(world, [pool(2)], FakeCloudOptions(lost=0.2)) as navarch:
        await navarch.settled(2)
        sick = navarch.nodes()[0]
        navarch.strike(sick, 79)
        await navarch.until(
            lambda: navarch.plane is not None and sick.id not in [n.id for n in navarch.nodes()]
        )
        await navarch.settled(2)
        await _finished_once(navarch, sick.id)


async def _finished_once(navarch: Fleet, sick: str) -> None:
    assert navarch.plane is not None
    repairs = [one for one in navarch.plane.fleet.context.state.repairs.values() if one.node == sick]
    assert [one.step for one in repairs] == [RepairStep.DONE]
    assert len(navarch.cloud.bought) == 3
    assert set(navarch.cloud.bought.values()) == {1}
    await navarch.world.sleep(600)
    assert len(navarch.cloud.alive()) == 2


POINTS = (
    "navarch.buy.before",
    "navarch.buy.after",
    "navarch.end.before",
    "navarch.end.after",
    "navarch.drain.before",
    "navarch.mark.before",
    "navarch.tick.decided",
    "navarch.journal.before",
    "navarch.journal.after",
    "provider.call.sent",
    "provider.provision.done",
    "provider.terminate.done",
)


# An errand that was killed before its first step is a coroutine that nobody awaited; that is what killing means.
@pytest.mark.filterwarnings("ignore:coroutine 'Errands._do' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("name", POINTS)
def test_killed_at_any_point_it_finishes_once(name: str):
    """The control plane dies at the n-th passing of a point, comes back, and nothing is done twice."""

    def killed(hit: int):
        async def scenario(world: World) -> None:
            world.faults.at(name, hit, Crash(down=Duration.of(seconds=3)))
            await _replace_one(world)

        return scenario

    for hit in (1, 2, 3, 5, 8, 13):
        report = explore(killed(hit), [hit], limits=LONG, failures_max=1)
        if report.first_failure is not None:
            report.first_failure.check(f"{name} at hit {hit}")
        assert report.points.get(name)


@pytest.mark.fault(38)
@seeds(2, limits=LONG)
async def test_health_that_flaps_for_an_hour_costs_at_most_one_node(world: World):
    """Every minute a link of one machine fails; in between the machine reports that it is well."""
    async with fleet(world, [pool(2)]) as navarch:
        await navarch.settled(2)
        flapping = navarch.nodes()[0]
        for turn in range(120):
            if flapping.id not in {node.id for node in navarch.nodes()}:
                break
            if turn % 2:
                navarch.strike(flapping, 74, gpu=turn % 8)
            await world.sleep(30)
        await navarch.settled(2)
        assert len(navarch.cloud.bought) <= 3
        assert navarch.plane is not None
        replaced = [
            one for one in navarch.plane.fleet.context.state.repairs.values() if one.step is RepairStep.DONE
        ]
        assert {one.node for one in replaced} <= {flapping.id}


@pytest.mark.fault(43)
@seeds(1, limits=LONG)
async def test_a_drain_waits_for_an_api_server_that_is_away_and_goes_on_when_it_is_back(world: World):
    """Also when the time for the drain is over: nothing says that the work has left."""
    async with fleet(world, [pool(2)]) as navarch:
        await navarch.settled(2)
        sick = navarch.nodes()[0]
        navarch.strike(sick, 79)
        await navarch.until(lambda: bool(navarch.nodes(NodeState.DRAINING)))
        navarch.work.away = True
        await world.sleep(90 * 60)
        assert [node.id for node in navarch.nodes(NodeState.DRAINING)] == [sick.id]
        assert not navarch.machine_of(sick).ended.is_set()
        assert navarch.plane is not None
        assert "does not answer" in navarch.plane.fleet.context.state.heartbeats[sick.id].waits
        navarch.work.away = False
        await navarch.settled(2)
        assert sick.id not in {node.id for node in navarch.nodes()}
