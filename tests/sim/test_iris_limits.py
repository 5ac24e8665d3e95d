"""A limit of waiting is kept to the moment, whenever the wait begins."""

import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
from protobuf import Oneof

from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.sim import World, simulate
from tests.sim.iris_world import Iris, iris


async def _given_up(cluster: Iris, job: str) -> pb.Job:
    await cluster.ended(job)
    found = await cluster.jobs.get(pb.GetRequest(job=job))
    assert found.ending is not None
    assert found.ending.cause == "waited_too_long"
    return found


async def _never_placed(cluster: Iris, wait_ms: int) -> None:
    found = await _given_up(cluster, await cluster.submit("key", _impatient(wait_ms)))
    assert wait_ms <= found.ended_ms - found.submitted_ms <= wait_ms + 1


async def _placed_and_lost(cluster: Iris, wait_ms: int) -> None:
    (machine,) = cluster.truth.machines
    machine.engine.restart()
    machine.daemon.restart()
    job = await cluster.submit("key", _impatient(wait_ms))
    waits_since = 0
    async for change in cluster.jobs.watch(pb.WatchRequest(job=job)):
        for task in change.tasks:
            if task.state == "running":
                machine.daemon.crash()
                machine.engine.crash()
            elif task.tries:
                waits_since = waits_since or task.since_ms
    found = await _given_up(cluster, job)
    assert wait_ms <= found.ended_ms - waits_since <= wait_ms + 1


def _impatient(wait_ms: int) -> pb.JobSpec:
    return pb.JobSpec(
        name="/ada/impatient",
        entry=Oneof("command", pb.Command(argv=["work"])),
        resources=pb.Resources(cpu_milli=4000, memory_bytes=1),
        environment=pb.Environment(variables={"FAILS": "0"}),
        replicas=1,
        wait_limit_ms=wait_ms,
    )


async def _life(world: World, wait_ms: int, *, placed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with iris(world, Path(folder), machines=1) as cluster:
            (machine,) = cluster.truth.machines
            machine.daemon.crash()
            machine.engine.crash()
            done = anyio.Event()

            async def ask(_host: object) -> None:
                # Off the beat of any timer.
                await world.sleep(world.rng.uniform(1, 2))
                await (_placed_and_lost if placed else _never_placed)(cluster, wait_ms)
                done.set()
                await anyio.sleep_forever()

            cluster.client.start(ask)
            with anyio.fail_after(120):
                await done.wait()


@pytest.mark.parametrize("placed", [False, True], ids=["never placed", "placed and lost"])
@pytest.mark.parametrize("wait_ms", [700, 1_234, 9_999])
@pytest.mark.parametrize("seed", range(3))
def test_a_task_waits_for_as_long_as_it_may_and_not_longer(seed: int, wait_ms: int, *, placed: bool):
    simulate(partial(_life, wait_ms=wait_ms, placed=placed), seed).check()
