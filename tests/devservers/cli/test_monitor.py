"""Watching servers through what happens to an API server."""

import io

import pytest
from aiohttp import web

from neorion.devservers.cli.commands.monitor_impl import monitor
from neorion.devservers.client import DevServerApi
from neorion.keel.base import Denied, Duration, Retry
from neorion.keel.cli import ColorMode, SharedOptions
from neorion.keel.cli.kit import Output, TerminalStream
from tests.keel.kube.stage import LeapClock, staged, status

pytestmark = pytest.mark.anyio

PAUSE = Duration.of(seconds=5)
THERE, AWAY, END = "there", "away", "end"


async def told(*answers: str, error: type[Exception], pause: Duration | None = PAUSE) -> list[str]:
    """What is said while the server answers like that; the client itself tries more than once where it is away."""
    turns, stream, clock = iter(answers), io.StringIO(), LeapClock()

    async def answer(request: web.Request) -> web.Response:
        if "metrics.k8s.io" in request.path:
            return status(404, "NotFound")
        match next(turns):
            case "there":
                return web.json_response({"items": [{"metadata": {"name": "box"}, "spec": {"flavor": "a"}}]})
            case "away":
                return status(503, "ServiceUnavailable", "apiserver is shutting down")
            case _:
                return status(403, "Forbidden", "enough")

    screen = TerminalStream.of(stream, ColorMode.NEVER, {})
    async with staged(answer, clock) as client:
        with pytest.raises(error):
            await monitor(
                DevServerApi(client, "n", clock), Output(SharedOptions(), screen, screen, {}), (), pause
            )
    return [line for line in stream.getvalue().splitlines() if line.startswith(("box", "warning"))]


async def test_an_api_server_that_is_away_for_a_while_does_not_end_it():
    lines = await told(THERE, *[AWAY] * 6, THERE, END, error=Denied)
    assert [line.split()[0] for line in lines] == ["box", "warning:", "box"]
    assert "apiserver is shutting down" in lines[1]


async def test_one_that_was_never_there_does():
    assert await told(*[AWAY] * 6, error=Retry) == []
