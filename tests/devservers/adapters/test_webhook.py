"""Warnings posted to a real HTTP server on this machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer as LocalServer

from neorion.devservers.adapters.webhook import AlertWebhook
from neorion.devservers.model import Alert, StopReason
from neorion.keel.base import Duration, Error, Retry, Terminal
from neorion.keel.clock import SystemClock, seeded_rng
from neorion.keel.config import SecretValue

pytestmark = pytest.mark.anyio

ALERT = Alert(
    "mydev", "dev-ann", "ann", datetime(2026, 11, 16, 9, tzinfo=UTC), StopReason.IDLE, "The server stops."
)


class Impatient(SystemClock):
    """Real time, without waiting for it."""

    async def sleep(self, span: Duration) -> None:
        del span


class Listener:
    """Answers with one status after the other, the last one for ever."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)
        self.heard: list[dict[str, Any]] = []

    async def hear(self, request: web.Request) -> web.Response:
        self.heard.append(await request.json())
        status = self._statuses.pop(0) if len(self._statuses) > 1 else self._statuses[0]
        return web.Response(status=status, headers={"Location": "/elsewhere"})


@asynccontextmanager
async def listening(listener: Listener, host: str = "127.0.0.1") -> AsyncGenerator[SecretValue]:
    app = web.Application()
    app.router.add_post("/{path:.*}", listener.hear)
    async with LocalServer(app, host=host) as server:
        yield SecretValue(str(server.make_url("/warnings")))


def webhook(url: SecretValue, *, allow_private: bool = True) -> AlertWebhook:
    return AlertWebhook(url, Impatient(), seeded_rng(1), allow_private=allow_private)


async def test_a_warning_says_whose_server_stops_and_when():
    listener = Listener(204)
    async with listening(listener) as url:
        await webhook(url).send(ALERT)
    assert listener.heard == [
        {
            "text": "The server stops.",
            "server": "mydev",
            "namespace": "dev-ann",
            "owner": "ann",
            "stops": "2026-11-16T09:00:00+00:00",
            "reason": "Idle",
        }
    ]


async def test_who_is_busy_is_asked_again_a_few_times():
    listener = Listener(503, 429, 200)
    async with listening(listener) as url:
        await webhook(url).send(ALERT)
    assert len(listener.heard) == 3
    broken = Listener(500)
    async with listening(broken) as url:
        with pytest.raises(Retry, match="answered 500"):
            await webhook(url).send(ALERT)
    assert len(broken.heard) == 4


@pytest.mark.parametrize("status", [302, 307, 400, 404])
async def test_a_refusal_and_a_redirect_are_taken_as_they_are(status: int):
    listener = Listener(status)
    async with listening(listener) as url:
        with pytest.raises(Terminal, match=f"answered {status}"):
            await webhook(url).send(ALERT)
    assert len(listener.heard) == 1


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.8", "169.254.169.254", "[::1]", "192.168.1.1"]
)
async def test_an_address_that_is_not_public_is_refused_unless_that_is_allowed(host: str):
    with pytest.raises(Terminal) as refused:
        await webhook(SecretValue(f"http://{host}:9/"), allow_private=False).send(ALERT)
    assert refused.value.code == "devservers.webhook_private"


async def test_no_error_tells_the_address():
    with pytest.raises(Error) as lost:
        await webhook(SecretValue("http://127.0.0.1:9/secret-path")).send(ALERT)
    assert "secret-path" not in f"{lost.value!r} {lost.value} {lost.value.hint}"
