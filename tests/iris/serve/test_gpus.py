"""Tasks that share a worker do not share its GPUs."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from neorion.iris.model import WorkerId
from neorion.iris.model.gen import iris_pb as pb
from tests.iris.serve.office import Office, asking, joining, office

pytestmark = pytest.mark.anyio


async def machine(there: Office, gpus: int) -> pb.JoinResponse:
    request = joining("by-hand-1")
    assert request.total is not None
    request.total.gpus, request.total.gpu_variant = gpus, "H100"
    return await there.worker("by-hand").join(request)


def wanting(name: str, gpus: int, *, warm: bool = False) -> pb.SubmitRequest:
    request = asking(name, cpu_milli=100)
    assert request.spec is not None
    request.spec.warm = warm
    assert request.spec.resources is not None
    request.spec.resources.gpus = gpus
    return request


def devices(there: Office, joined: pb.JoinResponse) -> dict[str, Sequence[int]]:
    cluster = there.parts.context.cluster
    attempts = [cluster.attempts[one] for one in cluster.attempts_on_worker[WorkerId(joined.worker)]]
    return {cluster.jobs[one.job].spec.name: one.gpus for one in attempts}


async def test_every_task_has_gpus_of_its_own_and_hands_them_on(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await machine(there, 8)
        for name, gpus in (("/ada/two", 2), ("/ada/none", 0), ("/ada/five", 5)):
            await there.jobs("ada").submit(wanting(name, gpus))
            await there.started(name)
        assert devices(there, joined) == {"/ada/two": (0, 1), "/ada/none": (), "/ada/five": (2, 3, 4, 5, 6)}
        first = await there.started("/ada/two")
        ended = pb.Seen(
            attempt=first.attempt, report_key=there.report_key(first.attempt), phase="ended", kind="exit"
        )
        await there.worker(joined.token).report(pb.ReportRequest(worker=joined.worker, seen=[ended]))
        await there.jobs("ada").submit(wanting("/ada/three", 3))
        await there.started("/ada/three")
        assert devices(there, joined)["/ada/three"] == (0, 1, 7)
    async with office(tmp_path) as there:
        # After a restart they still have them.
        assert devices(there, joined)["/ada/three"] == (0, 1, 7)


async def test_a_worker_is_told_which_they_are(tmp_path: Path):
    async with office(tmp_path) as there:
        joined = await machine(there, 4)
        await there.jobs("ada").submit(wanting("/ada/two", 2, warm=True))
        await there.jobs("ada").submit(wanting("/ada/one", 1, warm=True))
        await there.jobs("ada").submit(wanting("/ada/none", 0))
        told: dict[str, pb.Start] = {}
        async for batch in there.worker(joined.token).orders(pb.OrdersRequest(worker=joined.worker)):
            told |= {start.variables["IRIS_JOB_NAME"]: start for start in batch.start}
            if len(told) == 3:
                break
        found = {name: start.variables.get("CUDA_VISIBLE_DEVICES") for name, start in told.items()}
        assert found == {"/ada/two": "0,1", "/ada/one": "2", "/ada/none": None}
        # What a warm process has opened it keeps.
        assert told["/ada/two"].pool.endswith("/0/1")
