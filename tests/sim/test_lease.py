"""A lease service with fencing under every weather: at most one holder's writes count, and work goes on after healing.

A registry grants the lease, two workers contend for it and write to a ledger. Each grant carries a higher epoch; the
ledger refuses writes of an older epoch than it has seen. The planted mistake is a ledger that does not.
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest

from neorion.keel.base import Conflict, Duration, Error, Finding, Severity
from neorion.keel.clock import fault_point
from neorion.keel.sim import Crash, Delay, Host, World, explore, seeds, simulate

TTL_S = 2.0
WORKERS = ("left", "right")
POINTS = ("registry.granted", "ledger.checked", "worker.before_write")


@dataclass(slots=True)
class Truth:
    """What really happened, seen from outside of every host."""

    writes: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def violations(self) -> list[Finding]:
        for (before, _), (epoch, writer) in zip(self.writes[-2:], self.writes[-1:], strict=False):
            if epoch < before:
                sentence = f"a write of epoch {epoch} came after one of epoch {before}"
                return [Finding(Severity.ERROR, "lease.stale_write", writer, sentence)]
        return []


async def registry(host: Host, world: World) -> None:
    """Grants one lease at a time. After a restart it waits out the lease it may have granted before."""
    epoch = int(host.disk.read("epoch") or b"0")
    holder = ""
    free_at = host.clock.monotonic() + (TTL_S if epoch else 0)
    granting = anyio.Lock()

    async def grant(caller: str, _request: object) -> int:
        nonlocal epoch, holder, free_at
        async with granting:
            now = host.clock.monotonic()
            if now < free_at and caller != holder:
                raise Conflict("lease.held", f"{holder} holds the lease.")
            host.disk.replace("epoch", b"%d" % (epoch + 1))
            await host.disk.sync("epoch")
            epoch, holder, free_at = epoch + 1, caller, host.clock.monotonic() + TTL_S
            await fault_point("registry.granted")
            return epoch

    with world.network.serve("registry:lease", grant):
        await anyio.sleep_forever()


async def ledger(host: Host, world: World, *, truth: Truth, fenced: bool) -> None:
    newest = int(host.disk.read("epoch") or b"0")
    writing = anyio.Lock()

    async def write(caller: str, epoch: int) -> None:
        nonlocal newest
        async with writing:
            if fenced and epoch < newest:
                raise Conflict("lease.fenced", f"Epoch {epoch} is over.")
            await fault_point("ledger.checked")
            if epoch > newest:
                host.disk.replace("epoch", b"%d" % epoch)
                await host.disk.sync("epoch")
                newest = epoch
            truth.writes.append((epoch, caller))
            world.note(f"write of {caller}, epoch {epoch}")

    with world.network.serve("ledger:write", write):
        await anyio.sleep_forever()


async def worker(host: Host, world: World) -> None:
    """Takes the lease, writes while its own clock says that it holds it, takes it again."""
    while True:
        try:
            asked_at = host.clock.monotonic()
            with anyio.fail_after(1):
                epoch = await world.network.call("registry:lease", "please")
            while host.clock.monotonic() < asked_at + TTL_S * 0.8:
                await host.clock.sleep(Duration.of(seconds=host.rng.uniform(0.05, 0.2)))  # the work itself
                await fault_point("worker.before_write")
                with anyio.fail_after(1):
                    await world.network.call("ledger:write", epoch)
                await host.clock.sleep(Duration.of(seconds=host.rng.uniform(0.1, 0.3)))
        except (Error, TimeoutError):
            await host.clock.sleep(Duration.of(seconds=host.rng.uniform(0.1, 0.5)))


async def pause(world: World) -> None:
    victim = world.host(world.rng.choice(WORKERS))
    victim.pause()
    await world.sleep(world.rng.uniform(TTL_S, 2 * TTL_S))
    victim.resume()


async def partition(world: World) -> None:
    victim = world.rng.choice((*WORKERS, "ledger", "registry"))
    world.links.partition([victim], [name for name in (*WORKERS, "ledger", "registry") if name != victim])
    await world.sleep(world.rng.uniform(0, 2 * TTL_S))
    world.links.heal()


async def one_way_partition(world: World) -> None:
    world.links.cut([world.rng.choice(WORKERS)], [world.rng.choice(("ledger", "registry"))])
    world.links.cut([world.rng.choice(("ledger", "registry"))], [world.rng.choice(WORKERS)])
    await world.sleep(world.rng.uniform(0, 2 * TTL_S))
    world.links.heal()


async def crash(world: World) -> None:
    victim = world.host(world.rng.choice((*WORKERS, "ledger", "registry")))
    victim.crash()
    await world.sleep(world.rng.uniform(0, 1))
    victim.restart()


async def drift(world: World) -> None:
    victim = world.host(world.rng.choice(WORKERS))
    victim.drift(world.rng.uniform(0.3, 3))
    victim.clock.jump(world.rng.uniform(-3600, 3600))
    await world.sleep(world.rng.uniform(0, 2 * TTL_S))
    victim.drift(1)


async def points(world: World) -> None:
    """Crashes and long waits wherever the code says that it would hurt."""
    world.faults.at("*", world.rng.randrange(1, 20), Crash(down=Duration.of(ms=500)))
    world.faults.at("worker.*", world.rng.randrange(1, 10), Delay(Duration.of(seconds=3 * TTL_S)))
    await world.sleep(TTL_S)


Trouble = Callable[[World], Coroutine[Any, Any, None]]
TROUBLES: tuple[Trouble, ...] = (pause, partition, one_way_partition, crash, drift, points)


async def contention(world: World, trouble: Trouble, *, fenced: bool) -> None:
    truth = Truth()
    world.check(truth.violations)
    world.host("registry").start(partial(registry, world=world))
    world.host("ledger").start(partial(ledger, world=world, truth=truth, fenced=fenced))
    for name in WORKERS:
        world.host(name).start(partial(worker, world=world))
    for _ in range(3):
        await world.sleep(world.rng.uniform(0, TTL_S))
        await trouble(world)
    # Safety held so far, or the run would have ended. Now the weather is fine, and there must be progress.
    await world.sleep(4 * TTL_S)
    before = len(truth.writes)
    await world.sleep(2 * TTL_S)
    assert len(truth.writes) > before, "no progress after healing"


@pytest.mark.parametrize("trouble", TROUBLES)
@seeds(60)
async def test_no_stale_write_counts_and_work_goes_on(world: World, trouble: Trouble) -> None:
    await contention(world, trouble, fenced=True)


@pytest.mark.parametrize("trouble", [pause, drift, points])
def test_without_fencing_a_stale_write_is_found_and_replays(trouble: Trouble):
    scenario = partial(contention, trouble=trouble, fenced=False)
    failure = explore(scenario, range(200), failures_max=1).first_failure
    assert failure is not None
    assert "lease.stale_write" in str(failure.error)
    assert simulate(scenario, failure.seed).digest == failure.digest


def test_the_scenarios_reach_every_fault_point():
    assert explore(partial(contention, trouble=points, fenced=True), range(5)).missed(POINTS) == []
