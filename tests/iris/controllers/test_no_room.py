"""Workers that had no room for a job's files, as the controller remembers them."""

from pathlib import Path

import anyio
import pytest

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.ports import ExitKind, Phase
from tests.iris.serve.office import Office, asking, office

pytestmark = pytest.mark.anyio


async def placed(there: Office, *before: str) -> pb.Task:
    """The job's task, as soon as another worker than those before has it."""
    with anyio.fail_after(30):
        async for change in there.jobs("ada").watch(pb.WatchRequest(job="/ada/job")):
            for task in change.tasks:
                if task.worker and task.worker not in before:
                    return task
    raise AssertionError("it ended before it had a place")


async def turn_away(there: Office, token: str, task: pb.Task) -> None:
    seen = pb.Seen(
        attempt=task.attempt,
        report_key=there.report_key(task.attempt),
        phase=Phase.ENDED,
        kind=ExitKind.NO_ROOM,
        message="full",
    )
    await there.worker(token).report(pb.ReportRequest(worker=task.worker, seen=[seen]))


async def test_a_job_that_every_worker_turned_away_fails_although_the_controller_was_another(tmp_path: Path):
    async with office(tmp_path) as there:
        tokens = {joined.worker: joined.token for joined in [await there.join("by-hand") for _ in range(2)]}
        await there.jobs("ada").submit(asking("/ada/job"))
        first = await placed(there)
        await turn_away(there, tokens[first.worker], first)
        second = await placed(there, first.worker)
    async with office(tmp_path) as there:
        await turn_away(there, tokens[second.worker], second)
        job = await there.jobs("ada").get(pb.GetRequest(job="/ada/job"))
        assert job.ending is not None
        assert (job.state, job.ending.cause) == ("failed", "no_room")
