"""Two ways lead to a unary handler, the short one and Connect's own; nobody can tell by the answer which it was."""

import gzip

import pytest

from neorion.keel.rpc.fast_path import FastPath
from tests.keel.rpc.gen.echo_pb import Ping, Pong
from tests.keel.rpc.test_http import SAY, Answer, ask, request
from tests.keel.rpc.world import TOKEN, World, over_socket

pytestmark = pytest.mark.anyio
LONG = "a long text " * 1_000


async def say(w: World, ping: Ping, *, packed: bool, **headers: str) -> Answer:
    """A packed request takes Connect's own way."""
    body = ping.to_binary()
    if packed:
        headers["content_encoding"] = "gzip"
        body = gzip.compress(body)
    data = request(
        "POST", SAY, body, content_type="application/proto", authorization=f"Bearer {TOKEN}", **headers
    )
    return await ask(w, data)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which calls went the short way."""
    went: list[str] = []
    answer = FastPath.answer

    async def noted(self: FastPath, exchange: object, body: bytes) -> None:
        went.append(self.method.name)
        await answer(self, exchange, body)  # pyright: ignore[reportArgumentType] -- passed on as it came

    monkeypatch.setattr(FastPath, "answer", noted)
    return went


@pytest.mark.parametrize("packed", [False, True])
async def test_both_ways_bring_the_same_answer(short: list[str], *, packed: bool) -> None:
    async with over_socket() as w:
        answer = await say(w, Ping(text="hello", count=7), packed=packed, x_correlation_id="mine")
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/proto"
        assert answer.headers["x-correlation-id"] == "mine"
        assert Pong.from_binary(answer.body) == Pong(text="hello", count=7)
        assert w.echo.headers.keys() & {"authorization", "x-correlation-id"} == set()
        assert w.echo.headers["host"] == "x"
    assert short == ([] if packed else ["Say"])


@pytest.mark.parametrize("packed", [False, True])
async def test_a_long_answer_is_packed_for_who_can_unpack_it(*, packed: bool) -> None:
    async with over_socket() as w:
        answer = await say(w, Ping(text=LONG), packed=packed, accept_encoding="gzip")
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "accept-encoding"
        assert Pong.from_binary(gzip.decompress(answer.body)).text == LONG
        plain = await say(w, Ping(text=LONG), packed=packed)
        assert Pong.from_binary(plain.body).text == LONG


@pytest.mark.parametrize("packed", [False, True])
async def test_what_a_handler_says_in_headers_arrives(*, packed: bool) -> None:
    async with over_socket() as w:
        w.echo.say_in_headers = True
        answer = await say(w, Ping(text="hello"), packed=packed)
        assert answer.headers["x-said"] == "hello"
        assert answer.headers["trailer-x-said-last"] == "hello"


@pytest.mark.parametrize("packed", [False, True])
async def test_a_newer_protocol_is_refused(*, packed: bool) -> None:
    async with over_socket() as w:
        answer = await say(w, Ping(), packed=packed, connect_protocol_version="2")
        assert answer.status == 400
        assert answer.json["code"] == "invalid_argument"


@pytest.mark.parametrize("packed", [False, True])
async def test_a_message_that_cannot_be_read_is_refused(*, packed: bool) -> None:
    async with over_socket() as w:
        garbage = b"\xff" * 7
        headers = {"content_encoding": "gzip"} if packed else {}
        body = gzip.compress(garbage) if packed else garbage
        data = request(
            "POST", SAY, body, content_type="application/proto", authorization=f"Bearer {TOKEN}", **headers
        )
        answer = await ask(w, data)
        assert answer.status == 400
        assert answer.json["details"][0]["debug"]["code"] == "rpc.invalid_argument"
        assert answer.json["details"][0]["debug"]["family"] == "invalid"
