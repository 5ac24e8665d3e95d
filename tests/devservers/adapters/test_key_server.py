"""Keys fetched from a real HTTP server on this machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer as LocalServer

from neorion.devservers.adapters.key_server import HttpKeyServer
from neorion.devservers.model.user import FETCHED_KEYS_MAX, FetchedKeys
from neorion.keel.base import Invalid
from neorion.keel.clock import SystemClock

pytestmark = pytest.mark.anyio

KEY = "ssh-ed25519 AAAA"


class SetClock(SystemClock):
    """A clock that a test sets forward."""

    later = 0.0

    def monotonic(self) -> float:
        return self.later


@dataclass
class GitHub:
    """Answers with one body, and counts."""

    body: str = KEY
    status: int = 200
    asked: list[str] = field(default_factory=list[str])

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.Response(text=self.body, status=self.status, headers={"Location": "/elsewhere"})


@asynccontextmanager
async def key_server(github: GitHub, clock: SetClock | None = None) -> AsyncGenerator[HttpKeyServer]:
    app = web.Application()
    app.router.add_get("/{path:.*}", github.answer)
    async with LocalServer(app) as server:
        template = str(server.make_url("/")) + "{login}.keys"
        yield HttpKeyServer(template, clock or SetClock())


async def test_keys_are_read_line_by_line_and_what_is_no_key_is_left_out():
    junk = (
        "<html>",
        "no key at all",
        f'command="sh" {KEY}',
        KEY,
        "ssh-ed25519 " + "A" * 5_000,
        "ecdsa-sha2-nistp256 BBBB x",
    )
    async with key_server(GitHub("\r\n".join(junk))) as server:
        assert await server.keys("ann") == FetchedKeys((KEY, "ecdsa-sha2-nistp256 BBBB x"))
    many = "\n".join(f"ssh-ed25519 {number:04}" for number in range(100))
    async with key_server(GitHub(many)) as server:
        assert len((await server.keys("ann")).keys) == FETCHED_KEYS_MAX


async def test_an_answer_is_kept_for_five_minutes_and_a_failure_for_half_a_minute():
    clock, github = SetClock(), GitHub()
    async with key_server(github, clock) as server:
        for later, asked in ((0, 1), (299, 1), (301, 2)):
            clock.later = later
            await server.keys("ann")
            assert len(github.asked) == asked
        await server.keys("bob")
        assert github.asked[-1] == "/bob.keys"
        github.status, clock.later = 500, 700
        assert (await server.keys("ann")).problem
        github.status = 200
        for later, keys in ((729, ()), (731, (KEY,))):
            clock.later = later
            assert (await server.keys("ann")).keys == keys


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (404, "Not Found", ""),
        (500, KEY, "The key server answered 500 for ann."),
        (302, KEY, "The key server answered 302 for ann."),
        (200, KEY + " " + "x" * 100_000, "The key server answered more than 65536 bytes for ann."),
    ],
)
async def test_what_is_not_an_answer_gives_no_keys(status: int, body: str, problem: str):
    github = GitHub(body, status)
    async with key_server(github) as server:
        assert await server.keys("ann") == FetchedKeys(problem=problem)
    assert github.asked == ["/ann.keys"]


async def test_a_server_that_is_away_is_a_problem_and_no_answer():
    async with key_server(GitHub()) as server:
        pass
    assert (await server.keys("ann")).problem.startswith("The key server cannot be reached: Client")


@pytest.mark.parametrize(
    "template",
    [
        "http://github.com/{login}.keys",
        "https://github.com/keys",
        "https://{login}.example.com/keys",
        "https://github.com/{login}/{login}.keys",
        "file:///etc/{login}",
        "{login}",
        "",
    ],
)
def test_an_address_that_others_could_answer_for_is_refused(template: str):
    with pytest.raises(Invalid, match="is not the address of a key server") as refused:
        HttpKeyServer(template, SetClock())
    assert refused.value.code == "devservers.keys_url"
