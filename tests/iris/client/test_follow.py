"""What a task writes is followed through all of its tries, and through connections that break."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from neorion.iris.client import AsyncIrisClient
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.ports import AttemptExit, AttemptSpec, ExitKind
from neorion.iris.testing.memory_runtime import ScriptedOutcome
from neorion.keel.base import Retry
from tests.iris.serve.office import asking, office, working

pytestmark = pytest.mark.anyio


def fails_first(order: AttemptSpec) -> ScriptedOutcome:
    number = int(dict(order.variables)["IRIS_ATTEMPT_NUMBER"])
    # The first one writes more, so that its place is none in the second.
    greeting = b"try %d %s\n" % (number, b"begins" * (3 - number))
    return ScriptedOutcome(
        end=AttemptExit(ExitKind.EXIT, int(number < 2)), greeting=greeting, farewell=b"over\n"
    )


class Breaking:
    """Calls of a client, of which the first stream of logs breaks after its first part."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self._whole = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._calls, name)

    async def logs(self, request: pb.LogsRequest) -> AsyncIterator[pb.LogChunk]:
        async for chunk in self._calls.logs(request):
            yield chunk
            if not self._whole:
                self._whole = True
                raise Retry("rpc.broken", "The connection broke.")


@pytest.mark.parametrize("breaks", [False, True], ids=["one connection", "one that breaks"])
async def test_every_try_of_a_task_is_followed_from_its_beginning_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, breaks: bool
):
    async with (
        office(tmp_path) as there,
        working(there, tmp_path, fails_first),
        AsyncIrisClient(there.channel("ada"), "/ada") as client,
    ):
        if breaks:
            monkeypatch.setattr(client, "calls", Breaking(client.calls))
        request = asking("/ada/job")
        assert request.spec is not None
        request.spec.retries_after_failure = 1
        job = await client.calls.submit(request)
        told = [text async for text in client.follow(job.id)]
        assert "".join(told) == "try 1 beginsbegins\nover\ntry 2 begins\nover\n"
