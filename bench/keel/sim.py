"""The simulator beside a plain asyncio loop on the same program, and how fast virtual time and whole runs pass."""

import asyncio
import time

import anyio

from bench.kit import Report
from neorion.keel.base import Duration
from neorion.keel.clock import fault_point
from neorion.keel.sim import Host, World, simulate

TURNS = 30_000
HOURS = 12
RUNS = 300
POINTS = 200_000


async def ping_pong() -> None:
    """Two tasks pass a ball: every pass is a wake-up and a step."""
    there, ball_there = anyio.create_memory_object_stream[int](1)
    back, ball_back = anyio.create_memory_object_stream[int](1)

    async def pong() -> None:
        async for number in ball_there:
            await back.send(number)

    async with anyio.create_task_group() as group, there, back, ball_there, ball_back:
        group.start_soon(pong)
        for number in range(TURNS):
            await there.send(number)
            await ball_back.receive()
        group.cancel_scope.cancel()


def simulated_turns() -> float:
    async def scenario(_world: World) -> None:
        await ping_pong()

    start = time.perf_counter()
    simulate(scenario, 1).check()
    return TURNS / (time.perf_counter() - start)


def plain_turns() -> float:
    start = time.perf_counter()
    asyncio.run(ping_pong())
    return TURNS / (time.perf_counter() - start)


def steps() -> float:
    async def scenario(_world: World) -> None:
        await ping_pong()

    start = time.perf_counter()
    return simulate(scenario, 1).steps / (time.perf_counter() - start)


def virtual_seconds() -> float:
    async def idle(world: World) -> None:
        while world.clock.monotonic() < HOURS * 3_600:
            await world.clock.sleep(Duration.of(seconds=1))

    start = time.perf_counter()
    simulate(idle, 1).check()
    return HOURS * 3_600 / (time.perf_counter() - start)


async def small(world: World) -> None:
    """Two clients, one server, a crash and a restart."""
    served = 0

    async def answer(_caller: str, request: object) -> object:
        nonlocal served
        served += 1
        await fault_point("bench.answer")
        return request

    async def serve(_host: Host) -> None:
        with world.network.serve("server:echo", answer):
            await anyio.sleep_forever()

    async def client(host: Host) -> None:
        for number in range(5):
            await world.network.call("server:echo", number)
            await host.clock.sleep(Duration.of(ms=10))

    world.host("server").start(serve)
    await world.sleep(0.01)
    for name in ("one", "two"):
        world.host(name).start(client)
    await world.sleep(1)
    world.host("server").restart()
    assert served == 10


def runs() -> float:
    start = time.perf_counter()
    for seed in range(RUNS):
        simulate(small, seed).check()
    return RUNS / (time.perf_counter() - start)


def empty_runs() -> float:
    async def nothing(_world: World) -> None:
        pass

    start = time.perf_counter()
    for seed in range(RUNS):
        simulate(nothing, seed).check()
    return RUNS / (time.perf_counter() - start)


def point_cost() -> float:
    async def reach() -> None:
        for _ in range(POINTS):
            await fault_point("bench.point")

    start = time.perf_counter()
    asyncio.run(reach())
    return (time.perf_counter() - start) / POINTS * 1e9


def empty_coroutine_cost() -> float:
    async def nothing(_name: str) -> None:
        pass

    async def reach() -> None:
        for _ in range(POINTS):
            await nothing("bench.point")

    start = time.perf_counter()
    asyncio.run(reach())
    return (time.perf_counter() - start) / POINTS * 1e9


def run(report: Report) -> None:
    report.compare("ping-pong", "turns/s", simulated_turns, ("asyncio", plain_turns))
    report.alone("steps of ping-pong", "steps/s", steps)
    report.alone("a 1 s timer", "virtual s/s", virtual_seconds)
    report.alone("client, server, crash", "runs/s", runs)
    report.alone("empty scenario", "runs/s", empty_runs)
    report.compare(
        "fault point outside a simulation", "ns", point_cost, ("empty coroutine", empty_coroutine_cost)
    )
