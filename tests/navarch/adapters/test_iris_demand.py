"""The queue of a real Iris controller, as a pool's demand."""

from pathlib import Path

import anyio
import pytest

from neorion.iris.controllers.worker_tokens import MANUAL_JOIN
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.base import Error
from neorion.keel.config import SecretValue
from neorion.navarch.adapters.iris_demand import IrisDemand, IrisSettings
from neorion.navarch.adapters.null import NoDemand
from neorion.navarch.model import Demand
from tests.iris.serve.office import Office, asking, office

pytestmark = pytest.mark.anyio


def source(there: Office, who: str = "root", gpus: int = 8) -> IrisDemand:
    settings = IrisSettings("http://iris", "training", SecretValue(who))
    return IrisDemand(settings, there.transport, NoDemand(), gpus)


def job(name: str, replicas: int, gpus: int) -> pb.SubmitRequest:
    request = asking(name, replicas=replicas)
    assert request.spec is not None
    request.spec.resources = pb.Resources(cpu_milli=1000, gpus=gpus)
    return request


async def test_tasks_that_wait_are_demand_with_their_gpus(tmp_path: Path):
    async with office(tmp_path) as there:
        for request in (job("/ada/large", 3, 8), job("/ada/small", 2, 1), job("/ada/none", 5, 0)):
            await there.jobs("ada").submit(request)
        assert await source(there).demand("training") == Demand(
            pending=5, running=0, waiting=((1,), (1,), (8,), (8,), (8,))
        )
        assert (await source(there, gpus=0).demand("training")).pending == 10


async def test_the_tasks_of_a_gang_wait_together(tmp_path: Path):
    async with office(tmp_path) as there:
        for name, replicas, gpus in (("/ada/wide", 5, 4), ("/ada/small", 2, 8)):
            request = job(name, replicas, gpus)
            assert request.spec is not None
            request.spec.gang = "slice"
            await there.jobs("ada").submit(request)
        assert sorted((await source(there).demand("training")).waiting) == [(4, 4, 4, 4, 4), (8, 8)]


async def test_a_task_that_runs_waits_no_more_and_one_that_is_cancelled_is_forgotten(tmp_path: Path):
    async with office(tmp_path) as there:
        first = (await there.jobs("ada").submit(asking("/ada/one"))).id
        await there.jobs("ada").submit(asking("/ada/two", cpu_milli=64_000))
        await there.join(MANUAL_JOIN)
        await there.started(first)
        found = await source(there, gpus=0).demand("training")
        assert (found.pending, found.running) == (1, 1)
        await there.jobs("ada").cancel(pb.CancelRequest(job="/ada/two"))
        assert (await source(there, gpus=0).demand("training")).pending == 0


async def test_other_pools_do_not_hear_of_it(tmp_path: Path):
    async with office(tmp_path) as there:
        await there.jobs("ada").submit(job("/ada/large", 3, 8))
        assert await source(there).demand("inference") == Demand()


async def test_more_jobs_than_a_page_holds_are_all_counted(tmp_path: Path):
    async with office(tmp_path) as there:
        # All at once: one after the other, each would wait for a disk that may be busy.
        async with anyio.create_task_group() as group:
            for number in range(501):
                group.start_soon(there.jobs("ada").submit, job(f"/ada/{number}", 1, 1))
        assert (await source(there).demand("training")).pending == 501


async def test_who_may_not_ask_is_told_so(tmp_path: Path):
    async with office(tmp_path) as there:
        with pytest.raises(Error) as refused:
            await source(there, who="nobody").demand("training")
        assert refused.value.code == "navarch.iris_denied"
