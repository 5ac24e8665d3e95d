"""All of iris under every weather: nothing acknowledged is lost, results come once, tasks run once at a time."""

import gc
import hashlib
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import structs
from protobuf import Oneof

from neorion.iris.controllers.log_store import LogStore
from neorion.iris.controllers.worker_reports import WorkerReports
from neorion.iris.model import AttemptId, ClusterView, JobId, UserQuotas
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.record import Attempt
from neorion.iris.model.record import Worker as WorkerRecord
from neorion.iris.state import ClusterState, Journal
from neorion.keel.base import Duration
from neorion.keel.sim import LinkConditions, World, explore, seeds, simulate
from tests.sim import iris_world
from tests.sim.iris_mistakes import (
    look_for_the_end_only_before_the_files_are_fetched,
    obey_an_order_that_comes_twice,
)
from tests.sim.iris_truth import Machine
from tests.sim.iris_world import GANG_KEY, LEASE, Iris, iris

# Hundreds of seeds take their time on a busy machine.
JOBS = 8
CALM_S = 90.0
# Logs and large blobs are real files; here their syncs cost nothing.
MEMORY = Path("/dev/shm")  # noqa: S108 -- the folder in it has a name of its own


def wish(world: World, number: int, *, quick: bool) -> pb.JobSpec:
    rng = world.rng
    spec = pb.JobSpec(
        name=f"/ada/job-{number}",
        entry=Oneof("command", pb.Command(argv=["work"])),
        resources=pb.Resources(cpu_milli=rng.choice((500, 1000, 2000)), memory_bytes=1),
        environment=pb.Environment(variables={"FAILS": str(rng.choice((0, 0, 0.3)))}),
        replicas=1,
        retries_after_failure=rng.choice((0, 1, 3)),
        # Whoever is in a hurry pushes others aside.
        band=rng.choice(("production", "interactive", "batch", "batch")),
        run_limit_ms=rng.choice((0, 0, 0, 200)),
    )
    match rng.choice(("one", "one", "many", "gang", "impatient", "child", "big")):
        case "many":
            spec.replicas = rng.randrange(2, 6)
            spec.max_failed_tasks = rng.choice((0, 1))
        case "gang":
            spec.replicas, spec.gang = rng.randrange(2, 4), GANG_KEY
        case "impatient":
            spec.replicas = rng.randrange(1, 4)
            spec.wait_limit_ms = rng.randrange(500, 4_000)
            spec.max_failed_tasks = rng.choice((0, 2))
        case "child":
            spec.name = f"/ada/job-{number - 1}/child"
        case "big":
            spec.resources = pb.Resources(cpu_milli=4000, memory_bytes=1)
        case _:
            pass
    if quick and not spec.gang:
        spec.replicas, spec.resources = 15, pb.Resources(cpu_milli=500, memory_bytes=1)
    return spec


def bundle(world: World, number: int, spec: pb.JobSpec) -> list[pb.Blob]:
    """Files for most jobs: a worker fetches them before it starts an attempt, and others wait for their turn."""
    rng = world.chance(f"bundle {number}")
    if rng.random() < 0.2:
        return []
    body = f"files of job {number}".encode()
    assert spec.environment is not None
    spec.environment.bundle = hashlib.sha256(body).hexdigest()
    return [pb.Blob(digest=spec.environment.bundle, body=body)]


async def demand(cluster: Iris, number: int) -> None:
    world = cluster.world
    rng = world.chance(f"demand {number}")
    spec = wish(world, number, quick=cluster.quick)
    blobs = bundle(world, number, spec)
    await world.sleep(rng.uniform(0, 6))
    job = await cluster.submit(f"key-{number}", spec, blobs)
    if rng.random() < 0.3:
        await cluster.submit(f"key-{number}", spec, blobs)
    if rng.random() < 0.25:
        await world.sleep(rng.uniform(0, 3))
        await cluster.cancel(job)
    if rng.random() < 0.2:
        await cluster.drain_one_for(rng.uniform(0.5, 4))
    await cluster.ended(job)
    await cluster.read_logs(job)


# What goes wrong. Each heals by itself; a part that is in trouble already is spared another one.


async def controller_crashes(cluster: Iris) -> None:
    with cluster.trouble("controller") as spared:
        if not spared:
            cluster.controller.crash()
            await cluster.world.sleep(cluster.world.rng.choice((0.1, 2.0, 6.0)))
            cluster.controller.restart()


async def controller_pauses(cluster: Iris) -> None:
    with cluster.trouble("controller") as spared:
        if not spared:
            cluster.controller.pause()
            await cluster.world.sleep(cluster.world.rng.uniform(0.5, 7))
            cluster.controller.resume()


async def daemon_crashes(cluster: Iris) -> None:
    machine = some(cluster)
    with cluster.trouble(machine.daemon.name) as spared:
        if not spared:
            machine.daemon.crash()
            await cluster.world.sleep(cluster.world.rng.choice((0.05, 1.0, 2.5, 6.0)))
            machine.daemon.restart()


async def daemon_pauses(cluster: Iris) -> None:
    machine = some(cluster)
    with cluster.trouble(machine.daemon.name) as spared:
        if not spared:
            machine.daemon.pause()
            await cluster.world.sleep(cluster.world.rng.uniform(0.5, 8))
            machine.daemon.resume()


async def machine_crashes(cluster: Iris) -> None:
    machine = some(cluster)
    with cluster.trouble(machine.daemon.name) as spared:
        if not spared:
            machine.daemon.crash()
            machine.engine.crash()
            await cluster.world.sleep(cluster.world.rng.choice((0.1, 2.0, 6.0)))
            machine.runtime.reboot(forgetful=cluster.world.rng.random() < 0.5)
            machine.engine.restart()
            machine.daemon.restart()


async def machine_pauses(cluster: Iris) -> None:
    machine = some(cluster)
    with cluster.trouble(machine.daemon.name) as spared:
        if not spared:
            machine.frozen = True
            machine.daemon.pause()
            machine.engine.pause()
            await cluster.world.sleep(cluster.world.rng.uniform(0.5, 8))
            machine.frozen = False
            machine.engine.resume()
            machine.daemon.resume()
            cluster.truth.look_for_twins()


async def partition(cluster: Iris) -> None:
    names = ["controller"], [some(cluster).daemon.name]
    if cluster.world.rng.random() < 0.5:
        cluster.world.links.partition(*names)
    else:
        cluster.world.links.cut(*cluster.world.rng.sample(names, 2))
    await cluster.world.sleep(cluster.world.rng.uniform(0.5, 8))
    cluster.world.links.heal()


async def connections_break(cluster: Iris) -> None:
    for _ in range(8):
        victim = cluster.world.rng.choice((some(cluster).daemon.name, "client"))
        cluster.world.network.reset("controller", victim)
        await cluster.world.sleep(cluster.world.rng.uniform(0, 1))


async def clocks_drift(cluster: Iris) -> None:
    """By up to half as much again, which is what the lease's margin is for; the wall clock by whatever it likes."""
    machine = some(cluster)
    rate = cluster.world.rng.choice((1 / 1.5, 0.9, 1.1, 1.5))
    machine.daemon.drift(rate)
    machine.engine.drift(rate)
    machine.daemon.clock.jump(cluster.world.rng.uniform(-3600, 3600))
    cluster.controller.clock.jump(cluster.world.rng.uniform(-3600, 3600))
    await cluster.world.sleep(cluster.world.rng.uniform(2, 8))


async def disk_is_slow(cluster: Iris) -> None:
    with cluster.trouble("disk") as spared:
        if not spared:
            usual, cluster.lane.slowest_s = cluster.lane.slowest_s, cluster.world.rng.choice((0.1, 0.5, 2.0))
            await cluster.world.sleep(cluster.world.rng.uniform(1, 6))
            cluster.lane.slowest_s = usual


Trouble = Callable[[Iris], Coroutine[Any, Any, None]]
TROUBLES: tuple[Trouble, ...] = (
    controller_crashes,
    controller_pauses,
    daemon_crashes,
    daemon_pauses,
    machine_crashes,
    machine_pauses,
    partition,
    connections_break,
    clocks_drift,
    disk_is_slow,
)


def some(cluster: Iris) -> Machine:
    return cluster.world.rng.choice(cluster.truth.machines)


async def troubles(cluster: Iris) -> None:
    for _ in range(cluster.world.rng.randrange(1, 4)):
        await cluster.world.sleep(cluster.world.rng.uniform(0, 3))
        await cluster.world.rng.choice(TROUBLES)(cluster)


async def storm(cluster: Iris) -> None:
    """Connections break all the time over a slow disk, and now and then the controller goes: whatever may cross, crosses."""
    rng = cluster.world.rng
    with cluster.trouble("disk"):
        cluster.lane.slowest_s = 0.3
        usual, cluster.world.links.weather = (
            cluster.world.links.weather,
            LinkConditions(delay_s=(0.0002, 0.2)),
        )
        for _ in range(rng.randrange(10, 40)):
            await cluster.world.sleep(rng.uniform(0, 0.3))
            cluster.world.network.reset("controller", some(cluster).daemon.name)
            if rng.random() < 0.1:
                cluster.controller.restart()
        cluster.lane.slowest_s = 0.002
        cluster.world.links.weather = usual


async def gusts(cluster: Iris) -> None:
    """A quick disk behind a network that holds single messages back: an order may arrive after its attempt is over."""
    rng = cluster.world.rng
    usual, cluster.world.links.weather = cluster.world.links.weather, LinkConditions(delay_s=(0.0002, 0.3))
    for _ in range(rng.randrange(10, 20)):
        await cluster.world.sleep(rng.uniform(0, 1.5))
        cluster.world.network.reset("controller", some(cluster).daemon.name)
    cluster.world.links.weather = usual


Season = Callable[[Iris], Coroutine[Any, Any, None]]


async def mixed(cluster: Iris) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(troubles, cluster)


async def life(world: World, season: Season) -> None:
    """Work and trouble for a while, then calm: everything ends, and then nothing moves any more."""
    quick = season is gusts
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        async with iris(world, Path(folder), quick=quick) as cluster:
            done = anyio.Event()

            async def ask(_host: object) -> None:
                async with anyio.create_task_group() as group:
                    for number in range(JOBS):
                        group.start_soon(demand, cluster, number)
                done.set()
                await anyio.sleep_forever()

            cluster.client.start(ask)
            await season(cluster)
            try:
                with anyio.fail_after(CALM_S):
                    await done.wait()
            except TimeoutError:
                raise AssertionError(f"not everything ended: {cluster.story()}") from None
            await cluster.check_quiet()


@seeds(90)
async def test_every_job_ends_once_and_then_nothing_moves(world: World) -> None:
    await life(world, mixed)


@seeds(40)
async def test_a_storm_of_broken_connections_changes_nothing(world: World) -> None:
    await life(world, storm)


@seeds(20)
async def test_messages_that_are_held_back_change_nothing(world: World) -> None:
    await life(world, gusts)


def worlds() -> set[World]:
    gc.collect()
    return {found for found in gc.get_objects() if isinstance(found, World)}


def test_a_world_does_not_outlive_its_run():
    # Those of other tests, kept by an error that pytest keeps.
    before = worlds()
    simulate(partial(life, season=mixed), 1).check()
    assert worlds() == before


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("season", [mixed, storm, gusts])
def test_many_more_seeds_hold(season: Season):
    failure = explore(partial(life, season=season), range(20, 1200), failures_max=1).first_failure
    if failure is not None:
        failure.check()


# Mistakes, planted to see that they are found.


def publish_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report about an attempt that is over counts for whatever runs now."""

    def known(reports: Any, _worker: WorkerRecord, seen: pb.Seen) -> Attempt | None:
        attempts: dict[AttemptId, Attempt] = reports._cluster.attempts
        return attempts.get(AttemptId(seen.attempt)) or next(iter(attempts.values()), None)

    monkeypatch.setattr(WorkerReports, "_known", known)


def tell_before_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_journal: Journal) -> None:
        pass

    monkeypatch.setattr(Journal, "wait_durable", at_once)


def give_workers_up_before_their_lease_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    hasty = replace(LEASE, silent_after=Duration.of(seconds=1.7), lost_after=Duration.of(seconds=2))
    monkeypatch.setattr(iris_world, "LEASE", hasty)


def give_a_drained_worker_more(monkeypatch: pytest.MonkeyPatch) -> None:
    look = ClusterState.view

    def view(cluster: ClusterState, caps: UserQuotas) -> ClusterView:
        kept = cluster.workers
        cluster.workers = {name: structs.replace(one, draining=False) for name, one in kept.items()}
        try:
            return look(cluster, caps)
        finally:
            cluster.workers = kept

    monkeypatch.setattr(ClusterState, "view", view)


def drop_the_end_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    append = LogStore.append

    def forgetful(
        log_store: LogStore, job: JobId, attempt: AttemptId, offset: int, text: bytes, *, gap: bool = False
    ) -> int:
        return offset + len(text) if gap else append(log_store, job, attempt, offset, text)

    monkeypatch.setattr(LogStore, "append", forgetful)


Mistake = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    ("mistake", "season", "laws"),
    [
        # An end that is another's publishes its value, sets off a second try beside the first, or comes before its log.
        (publish_for_others, mixed, ("iris.stale_value", "iris.twins", "iris.log")),
        (tell_before_it_is_durable, storm, ("iris.forgot_a_job", "iris.forgot_an_end", "iris.twins")),
        (give_workers_up_before_their_lease_is_over, mixed, ("iris.twins",)),
        (give_a_drained_worker_more, mixed, ("iris.not_emptied",)),
        (drop_the_end_of_a_log, mixed, ("iris.log",)),
        (obey_an_order_that_comes_twice, gusts, ("iris.ran_twice", "iris.ran_after_success")),
        (look_for_the_end_only_before_the_files_are_fetched, gusts, ("iris.ran_twice",)),
    ],
)
def test_a_planted_mistake_is_found_and_replays(
    monkeypatch: pytest.MonkeyPatch, mistake: Mistake, season: Season, laws: tuple[str, ...]
):
    mistake(monkeypatch)
    scenario = partial(life, season=season)
    failure = explore(scenario, range(200), failures_max=1).first_failure
    assert failure is not None
    assert any(law in str(failure.error) for law in laws), failure.error
    assert simulate(scenario, failure.seed).digest == failure.digest
