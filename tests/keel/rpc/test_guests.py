"""Who comes without a token, where that is let in: on this machine, under a name that only this machine has."""

import http.client
import json

import anyio.to_thread
import pytest

from neorion.keel.base import Invalid, Unauthenticated
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import (
    AnonymousFallback,
    AsgiApp,
    Principal,
    RpcService,
    TokenAuthenticator,
    connect,
    serve,
)
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_connect import EchoASGIApplication
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import ALLOW, TOKEN, EchoService

pytestmark = pytest.mark.anyio


def open_app(service: EchoService) -> AsgiApp:
    known = TokenAuthenticator({TOKEN: Principal("ada", frozenset({"worker"}))})
    guests = AnonymousFallback(known, Principal("guest"))
    return AsgiApp([RpcService(EchoASGIApplication, service, ALLOW)], ids=SystemIds(), authenticator=guests)


@pytest.mark.parametrize(("token", "name"), [(None, "guest"), (TOKEN, "ada")])
async def test_who_shows_no_token_is_the_guest(token: str | None, name: str):
    service = EchoService()
    async with (
        serve(open_app(service)) as server,
        connect(server.address, ids=SystemIds(), token=token) as channel,
    ):
        await channel.client(EchoClient).say(Ping(text="x"))
    assert [who for who, _ in service.seen] == [name]


async def test_a_token_that_nobody_has_is_refused_all_the_same():
    async with (
        serve(open_app(EchoService())) as server,
        connect(server.address, ids=SystemIds(), token="wrong") as channel,
    ):
        with pytest.raises(Unauthenticated):
            await channel.client(EchoClient).say(Ping(text="x"))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:10000", 200),
        ("127.0.0.1:10000", 200),
        ("[::1]:10000", 200),
        ("[::1]", 200),
        ("evil.example", 401),
        ("evil.example:10000", 401),
        ("127.0.0.1.evil.example:10000", 401),
        ("localhost.evil.example", 401),
        ("10.0.0.7:10000", 401),
        ("", 401),
    ],
)
async def test_a_page_of_a_stranger_does_not_come_in_as_the_guest(host: str, status: int):
    def call(port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        body = json.dumps({"text": "x"})
        headers = {"content-type": "application/json", "host": host}
        connection.request("POST", "/neorion.tests.rpc.v1.Echo/Say", body, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    async with serve(open_app(EchoService())) as server:
        assert await anyio.to_thread.run_sync(call, server.port) == status


async def test_guests_are_not_let_in_from_other_machines():
    with pytest.raises(Invalid) as caught:
        async with serve(open_app(EchoService()), "0.0.0.0"):  # noqa: S104 -- that it is refused is the point
            pass
    assert caught.value.code == "rpc.open_to_network"
