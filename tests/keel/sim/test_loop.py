import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Duration, Error, Invalid
from neorion.keel.sim import SimulationLimits, World, simulate


def code_of(error: BaseException | None) -> str:
    assert isinstance(error, Error)
    return error.code


async def contend(_world: World) -> str:
    """Two tasks that do nothing but take turns."""
    turns = list[str]()

    async def run(name: str) -> None:
        for _ in range(20):
            turns.append(name)
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(run, "a")
        group.start_soon(run, "b")
    return "".join(turns)


def test_a_seed_repeats_and_seeds_differ():
    first = [simulate(contend, seed) for seed in range(200)]
    again = [simulate(contend, seed) for seed in range(200)]
    assert [(run.value, run.digest) for run in first] == [(run.value, run.digest) for run in again]
    assert len({run.value for run in first}) >= 190


@given(st.integers(0, 10_000))
def test_plain_callbacks_keep_their_order(seed: int):
    async def scenario(world: World) -> list[int]:
        seen = list[int]()
        done = asyncio.Event()
        for number in range(10):
            world.loop.call_soon(seen.append, number)
        for number in range(10, 20):
            world.loop.call_later(0, seen.append, number)
        world.loop.call_later(1, done.set)
        await done.wait()
        return seen

    assert simulate(scenario, seed).value == list(range(20))


def test_everything_ready_runs_once_before_anything_runs_again():
    async def scenario(_world: World) -> list[list[str]]:
        rounds = list[list[str]]()

        async def run(name: str) -> None:
            for number in range(5):
                while len(rounds) <= number:
                    rounds.append([])
                rounds[number].append(name)
                await anyio.lowlevel.checkpoint()
                assert all(len(names) == 3 for names in rounds[:number])

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(run, name)
        return rounds

    for seed in range(50):
        assert simulate(scenario, seed).check() is not None


def test_tasks_cancelled_by_walking_a_set_unwind_in_an_order_of_the_seed_alone():
    async def scenario(_world: World) -> str:
        order = list[str]()

        async def wait(name: str) -> None:
            try:
                await anyio.sleep_forever()
            finally:
                order.append(name)

        async with anyio.create_task_group() as group:
            for name in "abcdefgh":
                group.start_soon(wait, name)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        return "".join(order)

    litter = list[object]()
    for seed in range(20):
        once = simulate(scenario, seed)
        litter += [object() for _ in range(seed * 7)]  # moves the addresses by which sets order tasks
        assert simulate(scenario, seed).value == once.value
    assert len({simulate(scenario, seed).value for seed in range(20)}) > 10


def test_twenty_four_hours_of_a_one_second_timer_pass_at_once():
    async def scenario(world: World) -> int:
        ticks = 0
        while world.clock.monotonic() < 86_400:
            await world.clock.sleep(Duration.of(seconds=1))
            ticks += 1
        return ticks

    outcome = simulate(scenario, 1)
    assert outcome.check() == 86_400
    assert outcome.elapsed == Duration.of(hours=24)


def test_the_wall_clock_follows_virtual_time():
    async def scenario(world: World) -> Duration:
        before = world.clock.now()
        await world.clock.sleep(Duration.of(minutes=90))
        return world.clock.now().since(before)

    assert simulate(scenario, 1).check() == Duration.of(minutes=90)


def test_scopes_timeouts_and_memory_streams_of_anyio_work():
    async def scenario(world: World) -> None:
        with pytest.raises(TimeoutError):
            with anyio.fail_after(5):
                await anyio.sleep_forever()
        assert world.clock.monotonic() == 5
        with anyio.move_on_after(1) as scope, anyio.CancelScope(shield=True):
            await world.sleep(3)
        assert scope.cancel_called
        assert world.clock.monotonic() == 8
        sender, receiver = anyio.create_memory_object_stream[int](2)
        async with anyio.create_task_group() as group, receiver:
            group.start_soon(send_three, sender)
            assert [item async for item in receiver] == [0, 1, 2]
        ready = await start(world)
        assert ready == "ready"

    async def send_three(sender: "anyio.abc.ObjectSendStream[int]") -> None:
        async with sender:
            for number in range(3):
                await sender.send(number)

    async def start(world: World) -> str:
        async def serve(*, task_status: "anyio.abc.TaskStatus[str]") -> None:
            await world.sleep(1)
            task_status.started("ready")
            await anyio.sleep_forever()

        started = list[str]()
        async with anyio.create_task_group() as group:
            started.append(await group.start(serve))
            group.cancel_scope.cancel()
        return started[0]

    for seed in range(20):
        simulate(scenario, seed).check()


def test_a_task_group_raises_what_its_child_raises():
    async def scenario(world: World) -> None:
        async def fail() -> None:
            await world.sleep(1)
            raise ValueError("child")

        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            group.start_soon(anyio.sleep_forever)

    error = simulate(scenario, 1).error
    assert isinstance(error, ExceptionGroup)
    assert [str(part) for part in error.exceptions] == ["child"]


def test_an_error_in_a_loose_task_fails_the_run_though_nobody_awaits_it():
    async def fail() -> None:
        raise ValueError("loose")

    async def scenario(world: World) -> None:
        world.loop.create_task(fail())
        await world.sleep(1)

    assert str(simulate(scenario, 1).error) == "loose"


def test_an_error_in_a_callback_fails_the_run_at_once():
    async def scenario(world: World) -> None:
        world.loop.call_later(1, {}.pop, "missing")
        await world.sleep(100)

    outcome = simulate(scenario, 1)
    assert isinstance(outcome.error, KeyError)
    assert outcome.elapsed == Duration.of(seconds=1)


def test_an_error_in_a_future_nobody_awaits_fails_the_run():
    async def scenario(world: World) -> None:
        world.loop.create_future().set_exception(ValueError("forgotten"))
        await world.sleep(1)

    assert str(simulate(scenario, 1).error) == "forgotten"


def test_an_error_that_is_awaited_late_is_nobody_else_s_business():
    async def fail() -> None:
        raise ValueError("late")

    async def scenario(world: World) -> None:
        tasks = [world.loop.create_task(fail()) for _ in range(3_000)]
        await world.sleep(1)
        for task in tasks:
            with contextlib.suppress(ValueError):
                await task

    assert simulate(scenario, 1).ok


def test_a_deadlock_is_found_and_names_who_waits_where():
    async def scenario(_world: World) -> None:
        left, right = anyio.Lock(), anyio.Lock()

        async def take(first: anyio.Lock, second: anyio.Lock) -> None:
            async with first:
                await anyio.lowlevel.checkpoint()
                async with second:
                    pass

        async with anyio.create_task_group() as group:
            group.start_soon(take, left, right, name="left hand")
            group.start_soon(take, right, left, name="right hand")

    failures = [run for seed in range(20) if (run := simulate(scenario, seed)).error]
    error = failures[0].error
    assert code_of(error) == "sim.deadlock"
    assert "left hand on scenario waits in" in str(error)
    assert "right hand on scenario waits in" in str(error)
    assert "take:" in str(error)
    assert "Lock.acquire" in str(error)


def test_a_deadlock_tells_of_the_task_that_died_unseen():
    async def scenario(world: World) -> None:
        ready = asyncio.Event()

        async def fail() -> None:
            raise ValueError("this is why")

        world.loop.create_task(fail())
        await ready.wait()

    assert "failed with ValueError('this is why')" in str(simulate(scenario, 1).error)


def test_a_run_that_spins_ends_at_the_limit_of_steps():
    async def scenario(_world: World) -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    outcome = simulate(scenario, 1, limits=SimulationLimits(steps=1_000))
    assert code_of(outcome.error) == "sim.steps"
    assert outcome.steps == 1_000


def test_a_run_that_waits_too_long_ends_at_the_limit_of_time():
    async def scenario(world: World) -> None:
        while True:
            await world.clock.sleep(Duration.of(seconds=7))

    outcome = simulate(scenario, 1, limits=SimulationLimits(time=Duration.of(minutes=1)))
    assert code_of(outcome.error) == "sim.time"
    assert outcome.elapsed == Duration.of(seconds=56)


async def through_asyncio(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


async def through_anyio(work: Callable[[], None]) -> None:
    await to_thread.run_sync(work)


@pytest.mark.parametrize("in_a_thread", [through_asyncio, through_anyio])
def test_a_function_handed_to_a_thread_runs_at_a_moment_of_the_seed(
    in_a_thread: Callable[[Callable[[], None]], Awaitable[None]],
):
    async def scenario(_world: World) -> str:
        order = list[str]()

        async def work(letter: str) -> None:
            await in_a_thread(lambda: order.append(letter))

        async with anyio.create_task_group() as group:
            for letter in "abcd":
                group.start_soon(work, letter)
        return "".join(order)

    orders = [simulate(scenario, seed).check() for seed in range(150)]
    assert orders == [simulate(scenario, seed).check() for seed in range(150)]
    assert len(set(orders)) == 24


def test_an_error_in_a_function_handed_to_a_thread_reaches_the_caller():
    async def scenario(_world: World) -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)

    simulate(scenario, 1).check()


def test_cancelled_timeouts_do_not_pile_up():
    async def scenario(world: World) -> int:
        for _ in range(5_000):
            with anyio.fail_after(86_400):
                await world.sleep(0.001)
        return len(world.loop._timers._heap)

    size = simulate(scenario, 1).check()
    assert size is not None
    assert size < 300


def test_what_is_left_at_the_end_is_unwound_without_effect_on_the_outcome():
    unwound = list[str]()

    async def scenario(world: World) -> str:
        async def linger() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                unwound.append("linger")
                world.note("must not be told")
                raise ValueError("nobody hears this")

        async def generate():
            try:
                yield 1
            finally:
                unwound.append("generator")

        async def drain() -> None:
            async for _ in generate():
                await anyio.sleep_forever()

        world.loop.create_task(linger())
        world.loop.create_task(drain())
        await world.sleep(1)
        assert unwound == []
        return "done"

    outcome = simulate(scenario, 1)
    assert outcome.check() == "done"
    assert sorted(unwound) == ["generator", "linger"]
    assert outcome.tail == ()


def test_a_task_that_refuses_to_end_is_named():
    stop = False
    kept = list[object]()

    async def scenario(world: World) -> None:
        async def until_told() -> None:
            while not stop:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

        kept.append(world.loop.create_task(until_told(), name="stubborn one"))
        await world.sleep(1)

    error = simulate(scenario, 1).error
    assert code_of(error) == "sim.unending"
    assert "stubborn one" in str(error)
    stop = True  # lets the coroutine end in peace when it is collected


def test_a_simulation_inside_a_running_loop_is_refused():
    async def outer() -> None:
        simulate(contend, 1)

    with pytest.raises(Invalid) as caught:
        asyncio.run(outer())
    assert caught.value.code == "sim.nested"
