"""Another scheduler behind webhooks: what it is sent, and what is made of its answers."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web

from neorion.keel.base import Denied, Duration, Error, Invalid, Retry
from neorion.keel.clock import SystemClock
from neorion.navarch.adapters.fanout import FanoutScheduler
from neorion.navarch.adapters.notify import WebhookScheduler, WebhookSettings, webhook
from neorion.navarch.model import NodeState
from neorion.navarch.ports import Scheduler
from neorion.navarch.testing import node
from tests.doors import shut

pytestmark = pytest.mark.anyio
HOUR = Duration.of(hours=1)
NODE = node(state=NodeState.DRAINING, machine_name="gpu-17")


@dataclass
class Other:
    """Somebody's scheduler: a real HTTP server that notes what it hears and answers as it is told to."""

    address: str = ""
    heard: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    token: list[str] = field(default_factory=list[str])
    status: int = 200
    drained: bool = False
    body: bytes | None = None

    async def tell(self, request: web.Request) -> web.Response:
        self.heard.append((request.path, await request.json()))
        self.token.append(request.headers.get("Authorization", ""))
        return web.Response(status=self.status, headers={"Location": f"{self.address}/elsewhere"})

    async def ask(self, request: web.Request) -> web.Response:
        self.heard.append((request.path, request.query["node_id"]))
        answer = {"drained": self.drained, "message": "2 jobs left"}
        return web.Response(body=self.body) if self.body is not None else web.json_response(answer)


@pytest.fixture
async def other() -> AsyncGenerator[Other]:
    made = Other()
    app = web.Application()
    for path in ("/cordon", "/uncordon", "/drain", "/elsewhere"):
        app.router.add_post(path, made.tell)
    app.router.add_get("/status", made.ask)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.address = f"http://{host}:{port}"
    yield made
    await shut(runner)


@asynccontextmanager
async def scheduler(other: Other, **changes: Any) -> AsyncGenerator[WebhookScheduler]:
    usual = WebhookSettings(
        f"{other.address}/cordon",
        f"{other.address}/uncordon",
        f"{other.address}/drain",
        f"{other.address}/status",
        headers={"Authorization": "Bearer s3cret"},
    )
    settings = replace(usual, **changes)
    async with webhook(settings, SystemClock()) as made:
        yield made


async def test_a_cordon_is_told_with_its_reason_and_every_name_of_the_node(other: Other):
    async with scheduler(other) as made:
        await made.cordon(NODE, "XID 79")
        await made.uncordon(NODE)
    (path, body), (second, _) = other.heard
    assert (path, second) == ("/cordon", "/uncordon")
    told = {key: body[key] for key in ("event", "node_id", "machine", "machine_name", "reason", "pool")}
    assert told == {
        "event": "cordon",
        "node_id": "node-0001",
        "machine": "fake-000001",
        "machine_name": "gpu-17",
        "reason": "XID 79",
        "pool": "training",
    }
    assert body["timestamp"].endswith("Z")
    assert other.token == ["Bearer s3cret"] * 2


async def test_a_drain_is_told_once_and_asked_for_until_it_is_done(other: Other):
    async with scheduler(other) as made:
        assert (await made.drain(NODE, "XID 79", HOUR)).sentence == "2 jobs left"
        assert not (await made.drain(NODE, "XID 79", HOUR)).done
        other.drained = True
        assert (await made.drain(NODE, "XID 79", HOUR)).done
    assert [path for path, _ in other.heard] == ["/drain", "/status", "/status", "/status"]


async def test_a_drain_whose_time_is_over_waits_no_longer(other: Other):
    async with scheduler(other) as made:
        found = await made.drain(NODE, "XID 79", Duration(0))
    assert (found.done, found.sentence) == (True, "its time is over (2 jobs left)")


@pytest.mark.parametrize("silent", ["drain_url", "drain_status_url"])
async def test_a_drain_whose_time_is_over_does_not_wait_for_a_scheduler_that_is_away(
    other: Other, silent: str
):
    async with scheduler(other, **{silent: "http://127.0.0.1:1/away"}) as made:
        with pytest.raises(Retry):
            await made.drain(NODE, "XID 79", HOUR)
        found = await made.drain(NODE, "XID 79", Duration(0))
    assert found.done
    assert found.sentence.startswith("its time is over (http://127.0.0.1:1/away does not answer")


async def test_who_cannot_be_asked_is_only_told(other: Other):
    async with scheduler(other, drain_status_url="") as made:
        assert (await made.drain(NODE, "XID 79", HOUR)).done
    async with scheduler(other, cordon_url="") as made:
        await made.cordon(NODE, "XID 79")
    assert [path for path, _ in other.heard] == ["/drain"]


@pytest.mark.parametrize(
    ("status", "family", "code"),
    [
        (500, Retry, "navarch.notify_failed"),
        (429, Retry, "navarch.notify_failed"),
        (403, Denied, "navarch.notify_denied"),
        (404, Invalid, "navarch.notify_refused"),
        (307, Invalid, "navarch.notify_redirect"),
    ],
)
async def test_refusals_are_typed_and_redirects_are_not_followed(
    other: Other, status: int, family: type[Error], code: str
):
    other.status = status
    async with scheduler(other) as made:
        with pytest.raises(family) as refused:
            await made.cordon(NODE, "XID 79")
    assert refused.value.code == code
    assert [path for path, _ in other.heard] == ["/cordon"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<html>", "navarch.notify_answer"),
        (b"\xff", "navarch.notify_answer"),
        (b'{"drained": "yes"}', "navarch.notify_answer"),
        (b" " * 70_000, "navarch.notify_too_long"),
    ],
)
async def test_an_answer_that_is_no_status_is_refused(other: Other, body: bytes, code: str):
    other.body = body
    async with scheduler(other) as made:
        with pytest.raises(Invalid) as refused:
            await made.drain(NODE, "XID 79", HOUR)
    assert refused.value.code == code


async def test_who_does_not_listen_is_tried_again_later_and_no_secret_is_told(other: Other):
    gone = "http://127.0.0.1:1/cordon?key=s3cret"
    async with scheduler(other, cordon_url=gone) as made:
        with pytest.raises(Retry) as refused:
            await made.cordon(NODE, "XID 79")
    assert refused.value.code == "navarch.notify_unreachable"
    assert "s3cret" not in refused.value.sentence


async def test_of_several_schedulers_all_are_told_and_all_must_agree(other: Other):
    async with scheduler(other) as first, scheduler(other, drain_status_url="") as second:
        both: Scheduler = FanoutScheduler([first, second])
        verbs: list[Callable[[], Awaitable[object]]] = [
            lambda: both.cordon(NODE, "x"),
            lambda: both.uncordon(NODE),
        ]
        for verb in verbs:
            await verb()
        found = await both.drain(NODE, "XID 79", HOUR)
        assert (found.done, found.sentence) == (False, "2 jobs left")
        other.drained = True
        assert (await both.drain(NODE, "XID 79", HOUR)).done
    assert [path for path, _ in other.heard if path != "/status"] == [
        "/cordon", "/cordon", "/uncordon", "/uncordon", "/drain", "/drain",
    ]  # fmt: skip
