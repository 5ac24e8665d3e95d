"""Crews, loops and retries under virtual time: exact, and in every order that chance can make of it."""

import anyio
import pytest

from neorion.keel.base import Conflict, Deadline, Duration, Retry, Terminal
from neorion.keel.clock import seeded_rng
from neorion.keel.run import Backoff, Loop, LoopTiming, Supervisor, retry
from neorion.keel.sim import World, seeds

EVERY = LoopTiming(Duration.of(seconds=10))


class Ticks:
    """A tick that remembers when it ran, and fails as often as it is told to."""

    def __init__(self, world: World, failures: int = 0) -> None:
        self.at: list[float] = []
        self.failures = failures
        self._world = world

    async def __call__(self) -> None:
        self.at.append(round(self._world.clock.monotonic(), 3))
        if self.failures:
            self.failures -= 1
            raise Conflict("ship.stale", "Read again.")


def make_loop(world: World, ticks: Ticks) -> Loop:
    return Loop("ship.watch", ticks, EVERY, world.clock, world.rng)


@seeds(20)
async def test_a_loop_ticks_at_once_and_then_by_its_timer(world: World):
    ticks = Ticks(world)
    async with Supervisor() as crew:
        crew.loop(make_loop(world, ticks))
        await world.sleep(25)
        crew.stop()
    assert ticks.at == [0, 10, 20]


@seeds(20)
async def test_a_tick_that_knows_when_the_next_one_matters_shortens_the_rest(world: World):
    at: list[float] = []

    async def tick() -> Duration | None:
        at.append(round(world.clock.monotonic(), 3))
        return {1: Duration.of(seconds=3), 2: Duration.of(minutes=1)}.get(len(at))

    async with Supervisor() as crew:
        crew.loop(Loop("ship.watch", tick, EVERY, world.clock, world.rng))
        await world.sleep(25)
        crew.stop()
    assert at == [0, 3, 13, 23]


@seeds(20)
async def test_many_wakes_are_one_tick_and_a_wake_during_a_tick_is_not_lost(world: World):
    ticks = Ticks(world)
    loop = make_loop(world, ticks)
    async with Supervisor() as crew:
        crew.loop(loop)
        await world.sleep(1)
        for _ in range(100):
            loop.wake()
        await world.sleep(1)
        crew.stop()
    assert ticks.at == [0, 1]


@seeds(20)
async def test_a_wake_while_the_tick_runs_makes_another_tick(world: World):
    began: list[float] = []

    async def slow() -> None:
        began.append(world.clock.monotonic())
        await world.sleep(2)

    loop = Loop("ship.slow", slow, EVERY, world.clock, world.rng)
    async with Supervisor() as crew:
        crew.loop(loop)
        await world.sleep(1)
        loop.wake()
        await world.sleep(4)
        crew.stop()
    assert began == [0, 2]


@seeds(50)
async def test_a_failing_tick_is_tried_again_later_and_a_wake_does_not_hurry_it(world: World):
    ticks = Ticks(world, failures=3)
    loop = make_loop(world, ticks)
    async with Supervisor() as crew:
        crew.loop(loop)
        with anyio.move_on_after(5):
            while len(ticks.at) < 4:
                loop.wake()
                await world.sleep(0.01)
        crew.stop()
    assert len(ticks.at) >= 4
    waits = [later - earlier for earlier, later in zip(ticks.at[:4], ticks.at[1:4], strict=False)]
    assert all(wait <= 0.1 * 2**n + 0.001 for n, wait in enumerate(waits))


@seeds(20)
async def test_ticks_are_watched_with_their_time_and_their_failure(world: World):
    seen: list[tuple[str, float, bool]] = []

    def watch(name: str, seconds: float, *, failed: bool) -> None:
        seen.append((name, round(seconds, 3), failed))

    ticks = Ticks(world, failures=1)
    async with Supervisor() as crew:
        crew.loop(Loop("ship.watch", ticks, EVERY, world.clock, world.rng, watch))
        await world.sleep(5)
        crew.stop()
    assert seen == [("ship.watch", 0, True), ("ship.watch", 0, False)]


@seeds(20)
async def test_a_stopped_loop_finishes_its_tick_and_begins_no_other(world: World):
    done: list[str] = []

    async def slow() -> None:
        await world.sleep(3)
        done.append("whole")

    async with Supervisor() as crew:
        crew.loop(Loop("ship.slow", slow, EVERY, world.clock, world.rng))
        await world.sleep(1)
        crew.stop()
    assert done == ["whole"]
    assert world.clock.monotonic() == pytest.approx(3)


@seeds(20)
async def test_what_outstays_the_grace_is_cancelled_whatever_it_swallows(world: World):
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while swallowed < 5:
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                swallowed += 1
        await anyio.sleep_forever()

    async with Supervisor(grace=Duration.of(seconds=4)) as crew:
        crew.spawn("ship.stubborn", stubborn)
        await world.sleep(1)
        crew.stop()
    assert swallowed == 5
    assert world.clock.monotonic() == pytest.approx(5)


@seeds(20)
async def test_the_failure_of_one_is_the_failure_of_the_crew(world: World):
    ended: list[str] = []

    async def fails() -> None:
        await world.sleep(1)
        raise Terminal("ship.sunk", "It sank.")

    async def works() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("told")

    async def crewed() -> None:
        async with Supervisor() as crew:
            crew.spawn("ship.fails", fails)
            crew.spawn("ship.works", works)

    with pytest.raises(ExceptionGroup) as caught:
        await crewed()
    assert caught.group_contains(Terminal)
    assert ended == ["told"]


@seeds(20)
async def test_start_returns_what_the_work_says_when_it_is_ready(world: World):
    async def server(*, task_status: "anyio.abc.TaskStatus[int]") -> None:
        await world.sleep(2)
        task_status.started(7000)
        await anyio.sleep_forever()

    async with Supervisor() as crew:
        assert await crew.start("ship.server", server) == 7000
        assert world.clock.monotonic() == pytest.approx(2)
        crew.cancel()


@seeds(50)
async def test_retry_waits_between_attempts_and_honours_what_the_other_side_asks_for(world: World):
    calls: list[float] = []

    async def call() -> str:
        calls.append(world.clock.monotonic())
        if len(calls) < 3:
            raise Retry("ship.storm", "Wait.", after=Duration.of(seconds=7))
        return "across"

    assert await retry(call, Backoff(), world.clock, world.rng) == "across"
    assert calls == pytest.approx([0, 7, 14])


@seeds(50)
async def test_retry_gives_up_after_its_attempts_and_never_repeats_other_errors(world: World):
    tries = 0

    async def storm() -> None:
        nonlocal tries
        tries += 1
        raise Deadline("ship.storm", "Too slow.")

    with pytest.raises(Deadline):
        await retry(storm, Backoff(attempts=4), world.clock, world.rng)
    assert tries == 4

    async def wrong() -> None:
        nonlocal tries
        tries += 1
        raise Conflict("ship.stale", "Read again.")

    with pytest.raises(Conflict):
        await retry(wrong, Backoff(), world.clock, world.rng)
    assert tries == 5


def test_waits_double_up_to_their_most_and_are_spread_by_chance():
    backoff = Backoff(first=Duration.of(ms=100), most=Duration.of(seconds=1), attempts=6)
    assert [backoff.ceiling(n).ms for n in range(1, 7)] == [100, 200, 400, 800, 1000, 1000]
    assert backoff.ceiling(10_000) == backoff.most
    waits = list(backoff.waits(seeded_rng(1)))
    assert len(waits) == 5
    assert all(wait <= backoff.ceiling(n) for n, wait in enumerate(waits, 1))
