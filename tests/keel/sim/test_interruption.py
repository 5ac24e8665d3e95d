"""A time limit or Ctrl-C ends a simulation at once, wherever it strikes, and is never taken for a failure of the run."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from neorion.keel.sim import World, seeds, simulate


class Struck(BaseException):
    """As pytest's own are."""


def strike() -> None:
    raise Struck


async def in_the_scenario(world: World) -> None:
    await world.sleep(1)
    strike()


async def in_a_task_of_a_group(world: World) -> None:
    async def work() -> None:
        await world.sleep(1)
        strike()

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await world.sleep(100)


async def in_a_task_that_no_one_awaits(world: World) -> None:
    async def work() -> None:
        await world.sleep(1)
        strike()

    task = world.loop.create_task(work())
    await world.sleep(100)
    assert not task.done(), "the run went on with a dead part"


async def in_a_callback(world: World) -> None:
    world.loop.call_later(1, strike)
    await world.sleep(100)


async def where_a_group_waits_for_its_tasks(world: World) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(world.sleep, 100)
        strike()


PLACES = [
    in_the_scenario,
    in_a_task_of_a_group,
    in_a_task_that_no_one_awaits,
    in_a_callback,
    where_a_group_waits_for_its_tasks,
]


@pytest.mark.parametrize("place", PLACES)
def test_what_strikes_from_outside_is_raised_as_it_is(place: Callable[[World], Awaitable[None]]):
    late = list[float]()

    async def scenario(world: World) -> None:
        world.check(lambda: late.append(world.loop.now) or [])
        await place(world)

    with pytest.raises(Struck):
        simulate(scenario, 0)
    assert max(late) < 50


def test_it_is_not_told_as_two_different_runs():
    runs = list[int]()

    @seeds(3)
    async def scenario(world: World) -> None:
        runs.append(world.seed)
        if len(runs) == 2:
            await in_a_task_that_no_one_awaits(world)

    with pytest.raises(Struck):
        scenario()
    assert runs == [0, 0]


def test_the_next_simulation_is_not_disturbed():
    async def never_awaited(world: World) -> None:
        group = anyio.create_task_group()
        await group.__aenter__()
        group.start_soon(world.sleep, 1000)
        strike()

    with pytest.raises(Struck):
        simulate(never_awaited, 0)

    async def quiet(world: World) -> float:
        await world.sleep(1)
        return world.loop.now

    assert simulate(quiet, 0).check() == 1
