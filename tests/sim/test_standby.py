"""Two controllers, one leads: whatever happens to either, no attempt runs twice and nothing acknowledged is lost."""

import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.iris.worker.leader_epoch import LeaderEpoch
from neorion.keel.sim import World, explore, seeds, simulate
from neorion.keel.store import group_commit_store
from neorion.keel.store.group_commit_store import GroupedStore
from tests.sim.standby_world import StandbyIris, standby_iris
from tests.sim.test_iris import CALM_S, MEMORY, demand

pytestmark = pytest.mark.timeout(600)

JOBS = 6
# Rates of clocks that the margins of the leases allow for.
RATES = (1 / 1.15, 1, 1.15)


async def leader_crashes(cluster: StandbyIris) -> None:
    leader = cluster.leader
    leader.crash()
    await cluster.world.sleep(cluster.world.rng.choice((0.1, 2.0, 6.0)))
    leader.restart()


async def leader_pauses(cluster: StandbyIris) -> None:
    leader = cluster.leader
    leader.pause()
    await cluster.world.sleep(cluster.world.rng.uniform(0.5, 8))
    leader.resume()


async def leader_loses_the_store(cluster: StandbyIris) -> None:
    """It still reaches its workers."""
    await cluster.world.sleep(cluster.world.rng.uniform(0, 4))
    with cluster.cut_from_store(cluster.leader):
        await cluster.world.sleep(cluster.world.rng.uniform(0.5, 14))


async def leader_keeps_its_workers_alone(cluster: StandbyIris) -> None:
    """It reaches neither the store nor the clients."""
    await cluster.world.sleep(cluster.world.rng.uniform(1, 4))
    leader = cluster.leader
    cluster.world.links.partition([leader.name], ["client"])
    with cluster.cut_from_store(leader):
        await cluster.world.sleep(14)
    cluster.world.links.heal()


async def leader_loses_some_workers(cluster: StandbyIris) -> None:
    workers = [machine.daemon.name for machine in cluster.truth.machines]
    cluster.world.links.partition([cluster.leader.name], workers[: cluster.world.rng.randrange(1, 3)])
    await cluster.world.sleep(cluster.world.rng.uniform(0.5, 8))
    cluster.world.links.heal()


async def clocks_drift(cluster: StandbyIris) -> None:
    for host in (cluster.controller, cluster.standby, cluster.database):
        host.drift(cluster.world.rng.choice(RATES))
        host.clock.jump(cluster.world.rng.uniform(-3600, 3600))
    await leader_loses_the_store(cluster)


async def store_goes_away(cluster: StandbyIris) -> None:
    """For both, as in a restart of the server."""
    with cluster.cut_from_store(cluster.controller), cluster.cut_from_store(cluster.standby):
        await cluster.world.sleep(cluster.world.rng.uniform(0.5, 6))


Trouble = Callable[[StandbyIris], Coroutine[Any, Any, None]]
TROUBLES: tuple[Trouble, ...] = (
    leader_crashes,
    leader_pauses,
    leader_loses_the_store,
    leader_keeps_its_workers_alone,
    leader_loses_some_workers,
    clocks_drift,
    store_goes_away,
)


async def mixed(cluster: StandbyIris) -> None:
    for _ in range(cluster.world.rng.randrange(2, 4)):
        await cluster.world.sleep(cluster.world.rng.uniform(0, 2))
        await cluster.world.rng.choice(TROUBLES)(cluster)


async def slow_leader_is_met_again(cluster: StandbyIris) -> None:
    """A leader whose clock nearly stands still never learns that its lease is over: only its epoch tells it apart."""
    workers = [machine.daemon.name for machine in cluster.truth.machines]
    await cluster.world.sleep(1)
    old, new = cluster.leader, cluster.other
    old.drift(0.01)
    # A client has no epoch: it may believe a leader whose clock is beyond every margin.
    cluster.world.links.partition([old.name], ["client"])
    with cluster.cut_from_store(old), anyio.fail_after(CALM_S):
        while cluster.leader is not new:
            await cluster.world.sleep(0.1)
        cluster.world.links.partition([old.name], workers)
        for name in workers:
            cluster.world.network.reset(old.name, name)
        while not _all_obey(cluster, cluster.server.lease.epoch):
            await cluster.world.sleep(0.1)
        await cluster.world.sleep(1)
        # While the new one starts again everyone looks for a leader, and finds the old one first.
        new.crash()
        cluster.world.links.heal()
        cluster.world.links.partition([old.name], ["client"])
        await cluster.world.sleep(0.5)
        new.restart()
        for name in workers[1:]:
            cluster.world.links.partition([old.name], [name])
            cluster.world.network.reset(old.name, name)
        await cluster.world.sleep(14)
        old.drift(1)
        old.restart()
        cluster.world.links.heal()


def _all_obey(cluster: StandbyIris, epoch: int) -> bool:
    files = [cluster.folder / machine.daemon.name / "controller.epoch" for machine in cluster.truth.machines]
    return all(file.exists() and file.read_text() == str(epoch) for file in files)


async def life(world: World, trouble: Trouble) -> None:
    """Work and trouble for a while, then calm: everything ends, and then nothing moves any more."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        async with standby_iris(world, Path(folder)) as cluster:
            done = anyio.Event()

            async def ask(_host: object) -> None:
                async with anyio.create_task_group() as group:
                    for number in range(JOBS):
                        group.start_soon(demand, cluster, number)
                done.set()
                await anyio.sleep_forever()

            cluster.client.start(ask)
            await trouble(cluster)
            try:
                with anyio.fail_after(CALM_S):
                    await done.wait()
            except TimeoutError:
                raise AssertionError(f"not everything ended: {cluster.story()}") from None
            # A call that hung in a partition has come to its deadline by then, and its worker has joined again.
            await world.sleep(12)
            await cluster.check_quiet()


@pytest.mark.fault(22)
@pytest.mark.fault(50)
@seeds(16)
async def test_two_controllers_run_no_attempt_twice(world: World) -> None:
    await life(world, mixed)


@seeds(4)
async def test_a_worker_does_not_obey_an_older_leader_again(world: World) -> None:
    await life(world, slow_leader_is_met_again)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("trouble", [mixed, slow_leader_is_met_again])
def test_many_more_seeds_hold(trouble: Trouble):
    failure = explore(partial(life, trouble=trouble), range(16, 1000), failures_max=1).first_failure
    if failure is not None:
        failure.check()


# Mistakes, planted to see that they are found.


def go_on_without_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that is cut off from the store keeps the leases of its workers alive."""

    def check_lease(_store: GroupedStore) -> None:
        pass

    monkeypatch.setattr(GroupedStore, "check_lease", check_lease)


def leave_no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller believes in its lease for five times as long as the server does."""
    monkeypatch.setattr(group_commit_store, "_SURE", 5.0)


def obey_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(epoch: LeaderEpoch, number: int) -> None:
        if number > epoch._highest:
            usual(epoch, number)

    usual = LeaderEpoch.follow
    monkeypatch.setattr(LeaderEpoch, "follow", follow)


Mistake = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("mistake", "trouble"),
    [
        (go_on_without_the_store, leader_keeps_its_workers_alone),
        (leave_no_margin, leader_keeps_its_workers_alone),
        (obey_any_epoch, slow_leader_is_met_again),
    ],
)
def test_a_planted_mistake_is_found_and_replays(
    monkeypatch: pytest.MonkeyPatch, mistake: Mistake, trouble: Trouble
):
    mistake(monkeypatch)
    scenario = partial(life, trouble=trouble)
    failure = explore(scenario, range(100), failures_max=1).first_failure
    assert failure is not None
    assert "iris.twins" in str(failure.error), failure.error
    assert simulate(scenario, failure.seed).digest == failure.digest
