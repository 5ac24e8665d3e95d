"""Following a job whose changes come faster than they are followed."""

from collections.abc import AsyncGenerator
from typing import Any, cast

import anyio
import pytest

from neorion.iris.cli.log_follower import JobFollower
from neorion.iris.model.gen import iris_pb as pb

pytestmark = pytest.mark.anyio


class _Calls:
    async def wait(self, _request: pb.WaitRequest) -> pb.WaitResponse:
        return pb.WaitResponse(job=pb.Job(name="/ann/quick", state="succeeded"))

    async def logs(self, _request: pb.LogsRequest) -> AsyncGenerator[pb.LogChunk]:
        await anyio.lowlevel.checkpoint()
        yield pb.LogChunk()


class _Client:
    """Tells of two tries in one breath, as an answer does that was read in one piece."""

    calls = _Calls()

    async def watch(self, _job: str) -> AsyncGenerator[pb.JobChange]:
        for tries in (1, 2):
            yield pb.JobChange(job=pb.Job(), tasks=[pb.Task(index=0, state="running", tries=tries)])
        yield pb.JobChange(job=pb.Job(ended_ms=1))


async def test_two_tries_may_be_told_at_once():
    told: list[str] = []
    follow = JobFollower(cast("Any", _Client()), "quick", lambda _task, _text: None, told.append)
    assert (await follow.run()).state == "succeeded"
    assert len(told) == 2
