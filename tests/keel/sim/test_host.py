import anyio
import pytest

from neorion.keel.base import Conflict, Duration, Invalid
from neorion.keel.sim import Host, World, simulate

SECOND = Duration.of(seconds=1)


async def forever(_host: Host) -> None:
    await anyio.sleep_forever()


def test_a_crash_runs_no_handler_and_lets_nothing_of_the_program_happen_again():
    seen = list[str]()

    async def main(host: Host) -> None:
        async def work(name: str) -> None:
            try:
                while True:
                    await host.clock.sleep(SECOND)
                    seen.append(name)
            except BaseException:
                seen.append("except")
                raise
            finally:
                seen.append("finally")

        async with anyio.create_task_group() as group:
            with anyio.move_on_after(10):
                group.start_soon(work, "a")
                group.start_soon(work, "b")
                await anyio.sleep_forever()

    async def scenario(world: World) -> list[str]:
        seen.clear()
        host = world.host("one")
        host.start(main)
        await world.sleep(2.5)
        host.crash()
        assert not host.up
        await world.sleep(1_000)
        return list(seen)

    for seed in range(20):
        value = simulate(scenario, seed).check()
        assert value is not None
        assert sorted(value) == ["a", "a", "b", "b"]


def test_a_program_that_is_about_to_run_when_its_host_crashes_does_not_run():
    async def scenario(world: World) -> list[str]:
        seen = list[str]()

        async def main(host: Host) -> None:
            await host.clock.sleep(SECOND)
            seen.append("ran")

        host = world.host("one")
        host.start(main)
        await world.clock.sleep(SECOND)
        if not seen:
            host.crash()
        await world.sleep(10)
        return seen

    values = [simulate(scenario, seed).check() for seed in range(40)]
    assert [] in values
    assert ["ran"] in values


def test_a_restart_begins_anew_with_empty_memory_the_same_disk_and_the_same_clock():
    async def scenario(world: World) -> list[tuple[bytes, float]]:
        lives = list[tuple[bytes, float]]()

        async def main(host: Host) -> None:
            lives.append((host.disk.read("boots"), host.clock.monotonic()))
            host.disk.append("boots", b"x")
            await host.disk.sync("boots")
            await anyio.sleep_forever()

        host = world.host("one")
        host.start(main)
        for _ in range(2):
            await world.sleep(10)
            host.restart()
        await world.sleep(1)
        return lives

    assert simulate(scenario, 3).check() == [(b"", 0), (b"x", 10), (b"xx", 20)]


def test_a_paused_host_does_nothing_and_its_timers_fire_late():
    async def scenario(world: World) -> list[float]:
        ticks = list[float]()

        async def main(host: Host) -> None:
            while True:
                await host.clock.sleep(SECOND)
                ticks.append(host.clock.monotonic())

        host = world.host("one")
        host.start(main)
        await world.sleep(2.5)
        host.pause()
        assert host.up
        await world.sleep(10)
        host.resume()
        await world.sleep(2)
        return ticks

    assert simulate(scenario, 1).check() == [1, 2, 12.5, 13.5, 14.5]


@pytest.mark.parametrize("rate", [0.5, 2.0, 1.1, 3.7])
def test_a_drifting_clock_moves_sleeps_timeouts_and_readings_of_its_host_alone(rate: float):
    async def scenario(world: World) -> None:
        marks = list[tuple[float, float]]()

        async def main(host: Host) -> None:
            await host.clock.sleep(Duration.of(seconds=10))
            marks.append((host.clock.monotonic(), world.loop.now))
            with anyio.move_on_after(10):
                await anyio.sleep_forever()
            marks.append((host.clock.monotonic(), world.loop.now))

        host = world.host("one")
        host.start(main)
        await world.sleep(5)
        host.drift(rate)
        await world.sleep(100)
        assert marks == [
            (pytest.approx(10), pytest.approx(5 + 5 / rate)),
            (pytest.approx(20), pytest.approx(5 + 15 / rate)),
        ]
        assert world.clock.monotonic() == 105
        assert host.clock.monotonic() == pytest.approx(5 + 100 * rate)

    simulate(scenario, 1).check()


def test_a_wall_clock_jumps_alone():
    async def scenario(world: World) -> None:
        one, two = world.host("one"), world.host("two")
        one.clock.jump(3600)
        assert one.clock.now().since(two.clock.now()) == Duration.of(hours=1)
        assert one.clock.monotonic() == two.clock.monotonic()

    simulate(scenario, 1).check()


def test_a_program_that_raises_fails_the_run_and_one_that_returns_is_down():
    async def broken(host: Host) -> None:
        await host.clock.sleep(SECOND)
        raise ValueError("broken")

    async def short(host: Host) -> None:
        await host.clock.sleep(SECOND)

    async def first(world: World) -> None:
        world.host("one").start(broken)
        await world.sleep(5)

    async def second(world: World) -> bool:
        host = world.host("one")
        host.start(short)
        await world.sleep(2)
        return host.up

    assert str(simulate(first, 1).error) == "broken"
    assert simulate(second, 1).check() is False


def test_what_cannot_be_is_refused():
    async def scenario(world: World) -> None:
        host = world.host("one")
        for verb in (host.crash, host.pause, host.resume, host.restart):
            with pytest.raises(Conflict):
                verb()
        host.start(forever)
        with pytest.raises(Conflict):
            host.start(forever)
        with pytest.raises(Invalid):
            host.drift(0)
        for name in ("", "Not A Name", "scenario"):
            with pytest.raises(Invalid):
                world.host(name)

    simulate(scenario, 1).check()


def test_a_program_cannot_crash_its_own_host_and_go_on():
    async def main(host: Host) -> None:
        host.crash()

    async def scenario(world: World) -> None:
        world.host("one").start(main)
        await world.sleep(1)

    error = simulate(scenario, 1).error
    assert isinstance(error, Invalid)
    assert error.code == "sim.self_crash"


def test_hosts_and_the_scenario_draw_from_streams_of_their_own():
    async def scenario(world: World) -> tuple[float, float, float]:
        return world.rng.random(), world.host("one").rng.random(), world.host("two").rng.random()

    value = simulate(scenario, 1).check()
    assert value is not None
    assert len(set(value)) == 3
