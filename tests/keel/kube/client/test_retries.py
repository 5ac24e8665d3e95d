"""What is tried again, how long after, and what never is."""

import json
import socket
from dataclasses import dataclass

import pytest
from aiohttp import web

from neorion.keel.base import Deadline, Error, Retry, Terminal
from neorion.keel.kube import MergePatch, ObjectMeta
from neorion.keel.kube.client import Client, ClusterConfig
from neorion.keel.kube.client.transport import BACKOFF
from neorion.keel.kube.core import CONFIG_MAP, ConfigMap
from tests.keel.kube.stage import Handler, LeapClock, client_of, staged

pytestmark = pytest.mark.anyio

GOOD = {"metadata": {"name": "a", "namespace": "n"}, "data": {"x": "1"}}


@dataclass(frozen=True)
class Answer:
    """What the server says; a response itself can be sent only once."""

    code: int
    body: object = None
    after: str = ""

    def made(self) -> web.Response:
        body = self.body if self.body is not None else {"kind": "Status", "code": self.code, "message": "no"}
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(
            text=text, status=self.code, headers={"Retry-After": self.after} if self.after else {}
        )


def script(*answers: Answer | None) -> tuple[Handler, list[str]]:
    """Answers in turn, None by a cut connection, and well after that. Also the methods of the requests that came."""
    came: list[str] = []
    left = iter(answers)

    async def handle(request: web.Request) -> web.StreamResponse:
        await request.read()
        came.append(request.method)
        answer = next(left, Answer(200, GOOD))
        if answer is None:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        return answer.made()

    return handle, came


async def create(client: Client) -> ConfigMap:
    return await client.create(CONFIG_MAP, ConfigMap(ObjectMeta(name="a", namespace="n")))


async def get(client: Client) -> ConfigMap:
    return await client.get(CONFIG_MAP, "a", "n")


async def apply(client: Client) -> ConfigMap:
    return await client.apply(CONFIG_MAP, GOOD, "me")


async def patch(client: Client) -> ConfigMap:
    return await client.patch(CONFIG_MAP, "a", MergePatch({"data": {}}), "n")


CALLS = {"create": create, "get": get, "apply": apply, "patch": patch}


@pytest.mark.parametrize("call", CALLS)
async def test_whoever_is_told_to_come_later_waits_at_least_as_long(call: str):
    handle, came = script(Answer(429, after="3"), Answer(429, after="2"), Answer(503, after="4"))
    clock = LeapClock()
    async with staged(handle, clock) as client:
        assert (await CALLS[call](client)).data == {"x": "1"}
    assert len(came) == 4
    assert [round(wait) for wait in clock.slept] == [3, 2, 4]


async def test_a_wait_that_is_too_long_is_the_callers():
    handle, came = script(Answer(429, after="3600"))
    clock = LeapClock()
    async with staged(handle, clock) as client:
        with pytest.raises(Retry) as refused:
            await get(client)
    assert refused.value.after is not None
    assert refused.value.after.seconds == 3600
    assert (len(came), clock.slept) == (1, [])


async def test_retries_have_an_end():
    handle, came = script(*[Answer(429, after="1")] * 50)
    async with staged(handle) as client:
        with pytest.raises(Retry) as refused:
            await get(client)
    assert refused.value.code == "kube.throttled"
    assert len(came) == BACKOFF.attempts


@pytest.mark.parametrize("call", ["get", "apply"])
@pytest.mark.parametrize("fault", [None, Answer(500), Answer(503)], ids=["cut", "500", "503"])
async def test_what_may_be_done_twice_is_asked_for_again(call: str, fault: Answer | None):
    handle, came = script(fault)
    async with staged(handle) as client:
        assert (await CALLS[call](client)).data == {"x": "1"}
    # The HTTP client itself may have tried once more.
    assert len(came) >= 2


@pytest.mark.parametrize("call", ["create", "patch"])
@pytest.mark.parametrize(
    ("fault", "code"),
    [(None, "kube.lost"), (Answer(500), "kube.failed"), (Answer(503), "kube.unavailable")],
    ids=["cut", "500", "503"],
)
async def test_what_may_have_been_done_is_never_done_again(call: str, fault: Answer | None, code: str):
    handle, came = script(fault)
    async with staged(handle) as client:
        with pytest.raises(Retry) as unknown:
            await CALLS[call](client)
    assert unknown.value.code == code
    assert len(came) == 1


async def test_a_lost_answer_says_that_nobody_knows():
    handle, _ = script(None)
    async with staged(handle) as client:
        with pytest.raises(Deadline) as unknown:
            await create(client)
    assert "may have been carried out" in unknown.value.hint


async def test_a_disruption_budget_is_the_drains_to_wait_for():
    causes = [{"reason": "DisruptionBudget", "message": "needs 2"}]
    handle, came = script(Answer(429, {"code": 429, "details": {"causes": causes}}))
    async with staged(handle) as client:
        with pytest.raises(Retry) as refused:
            await client.evict("a", "n")
    assert refused.value.code == "kube.disruption_budget"
    assert len(came) == 1


async def test_a_server_that_is_not_there_is_waited_for_a_little():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        clock = LeapClock()
        async with client_of(ClusterConfig(f"http://127.0.0.1:{port}"), clock) as client:
            with pytest.raises(Retry) as away:
                await create(client)
    assert away.value.code == "kube.unreachable"
    assert len(clock.slept) == BACKOFF.attempts - 1


@pytest.mark.parametrize(
    ("answer", "family"),
    [
        (Answer(302, "<html>proxy login</html>"), Error),
        (Answer(200, "this is no JSON"), Terminal),
        (Answer(200, {"metadata": {"name": 5}}), Terminal),
    ],
    ids=["redirect", "text", "shape"],
)
async def test_an_answer_that_no_api_server_gives_is_an_error_with_a_hint(
    answer: Answer, family: type[Error]
):
    handle, came = script(answer)
    async with staged(handle) as client:
        with pytest.raises(family) as strange:
            await get(client)
    assert strange.value.hint
    assert len(came) == 1
