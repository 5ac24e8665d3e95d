import asyncio
import timeit
from collections.abc import Callable, Coroutine

import pytest

from neorion.keel.base import Duration, Invalid, Retry
from neorion.keel.clock import fault_point
from neorion.keel.sim import Crash, Delay, Fail, Host, World, explore, simulate

POINTS = ("job.begin", "job.work", "job.end")


def busy() -> Exception:
    return Retry("test.busy", "Busy.")


async def jobs(host: Host) -> None:
    for _ in range(10):
        for name in POINTS:
            await fault_point(name)
        await host.clock.sleep(Duration.of(seconds=1))


def test_points_are_counted_traced_and_the_missed_ones_named():
    async def scenario(world: World) -> list[str]:
        world.host("one").start(jobs)
        await world.sleep(4.5)
        return world.faults.missed([*POINTS, "job.never"])

    outcome = simulate(scenario, 1)
    assert outcome.check() == ["job.never"]
    assert outcome.points == {"job.begin": 5, "job.work": 5, "job.end": 5}
    assert outcome.tail[-1] == "4.000000 one: point job.end"
    assert explore(scenario, range(3)).points == {"job.begin": 15, "job.work": 15, "job.end": 15}


def test_a_schedule_crashes_a_host_at_the_third_hit_and_no_code_after_it_runs():
    async def scenario(world: World) -> tuple[dict[str, int], bool]:
        world.faults.at("job.work", 3, Crash(), host="one")
        world.host("one").start(jobs)
        world.host("two").start(jobs)
        await world.sleep(20)
        return dict(world.faults.hits), world.host("one").up

    hits, up = simulate(scenario, 1).check() or ({}, True)
    assert hits == {"job.begin": 13, "job.work": 13, "job.end": 12}
    assert not up


def test_a_host_crashed_at_a_point_comes_back_when_the_rule_says_so():
    async def scenario(world: World) -> list[float]:
        begun = list[float]()

        async def main(host: Host) -> None:
            begun.append(host.clock.monotonic())
            try:
                await jobs(host)
            finally:
                begun.append(-1)

        world.faults.at("job.*", 5, Crash(down=Duration.of(seconds=30)))
        world.host("one").start(main)
        await world.sleep(35)
        return list(begun)

    assert simulate(scenario, 1).check() == [0, 31]


def test_a_point_may_raise_or_wait():
    async def scenario(world: World) -> None:
        world.faults.at("store.commit", 2, Fail(busy))
        world.faults.at("store.commit", 3, Delay(Duration.of(seconds=10)))
        await fault_point("store.commit")
        with pytest.raises(Retry):
            await fault_point("store.commit")
        assert world.clock.monotonic() == 0
        await fault_point("store.commit")
        assert 0 < world.clock.monotonic() < 10

    simulate(scenario, 1).check()


def test_chance_strikes_about_as_often_as_it_says():
    async def scenario(world: World) -> int:
        world.faults.sometimes("a.*", 0.25, Fail(busy))
        struck = 0
        for _ in range(400):
            try:
                await fault_point("a.b")
            except Retry:
                struck += 1
        return struck

    assert 60 < (simulate(scenario, 1).check() or 0) < 140


def test_a_new_point_leaves_the_fate_of_the_others_as_it_was():
    async def fates(world: World, *, new_point: bool) -> list[bool]:
        world.faults.sometimes("*", 0.5, Fail(busy))
        struck = list[bool]()
        for _ in range(50):
            if new_point:
                try:
                    await fault_point("new")
                except Retry:
                    world.note("new")
            try:
                await fault_point("old")
            except Retry:
                struck.append(True)
            else:
                struck.append(False)
        return struck

    with_it = simulate(lambda world: fates(world, new_point=True), 7).check()
    assert with_it == simulate(lambda world: fates(world, new_point=False), 7).check()


def test_wrong_plans_are_refused():
    async def scenario(world: World) -> None:
        with pytest.raises(Invalid):
            world.faults.sometimes("*", 1.5, Crash())
        with pytest.raises(Invalid):
            world.faults.at("*", 0, Crash())
        world.faults.at("*", 1, Crash())
        with pytest.raises(Invalid, match="scenario itself"):
            await fault_point("here")

    simulate(scenario, 1).check()


def test_outside_of_a_simulation_a_point_costs_next_to_nothing():
    async def nothing(_name: str) -> None:
        pass

    async def seconds(step: Callable[[str], Coroutine[None, None, None]]) -> float:
        start = timeit.default_timer()
        for _ in range(10_000):
            await step("store.commit.before")
        return timeit.default_timer() - start

    async def best_of_twenty() -> tuple[float, float]:
        rounds = [(await seconds(fault_point), await seconds(nothing)) for _ in range(20)]
        return min(ours for ours, _ in rounds), min(empty for _, empty in rounds)

    ours, empty = asyncio.run(best_of_twenty())
    assert ours < 5 * empty
