"""What is refused before anything is served, and what a client refuses before anything is sent."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from protobuf import DescService

from neorion.keel.base import Conflict, Invalid, Retry
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import (
    KNOWN,
    AsgiApp,
    ClientTls,
    Principal,
    RpcService,
    ServerTls,
    TokenAuthenticator,
    connect,
    serve,
)
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_connect import EchoASGIApplication
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import ALLOW, EchoService, make_app

pytestmark = pytest.mark.anyio


def app_with(allow: dict[str, set[str]]) -> AsgiApp:
    return AsgiApp([RpcService(EchoASGIApplication, EchoService(), allow)], ids=SystemIds())


def test_a_method_nobody_was_allowed_is_an_error_at_start() -> None:
    with pytest.raises(Invalid) as caught:
        app_with({name: roles for name, roles in ALLOW.items() if name != "Watch"})
    assert caught.value.code == "rpc.undeclared"
    assert "Watch" in caught.value.hint


def test_a_misspelt_method_is_an_error_at_start() -> None:
    with pytest.raises(Invalid) as caught:
        app_with({**ALLOW, "Sey": {KNOWN}})
    assert caught.value.code == "rpc.unknown_method"
    assert "Say" in caught.value.hint


def test_a_method_that_streams_from_the_client_is_an_error_at_start() -> None:
    class Streaming(EchoService):
        @classmethod
        def desc(cls) -> DescService:
            desc: Any = EchoService.desc()
            method = next(found for found in desc.methods if found.name == "Say")
            object.__setattr__(method, "method_kind", "bidi_streaming")
            return desc

    try:
        with pytest.raises(Invalid) as caught:
            AsgiApp([RpcService(EchoASGIApplication, Streaming(), ALLOW)], ids=SystemIds())
        assert caught.value.code == "rpc.client_stream"
    finally:
        for method in EchoService.desc().methods:
            if method.name == "Say":
                object.__setattr__(method, "method_kind", "unary")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 -- that it is refused is the point
async def test_a_network_address_without_authentication_is_refused(host: str) -> None:
    with pytest.raises(Invalid) as caught:
        async with serve(app_with(ALLOW), host):
            pass
    assert caught.value.code == "rpc.open_to_network"


async def test_a_network_address_is_served_with_tokens_or_on_purpose() -> None:
    _, app = make_app()
    async with serve(app, "0.0.0.0") as server:  # noqa: S104 -- as above
        assert server.port > 0
    async with (
        serve(app_with(ALLOW), "0.0.0.0", open_to_network=True) as server,  # noqa: S104 -- as above
        connect(f"127.0.0.1:{server.port}", ids=SystemIds()) as channel,
    ):
        assert (await channel.client(EchoClient).say(Ping(text="local"))).text == "local"


async def test_a_port_in_use_is_a_conflict_and_never_shared() -> None:
    async with serve(app_with(ALLOW)) as server:
        with pytest.raises(Conflict) as caught:
            async with serve(app_with(ALLOW), port=server.port):
                pass
        assert caught.value.code == "rpc.port_taken"


async def test_the_port_is_free_again_once_the_server_is_gone() -> None:
    async with serve(app_with(ALLOW)) as server:
        port = server.port
    async with serve(app_with(ALLOW), port=port) as server:
        assert server.port == port


@pytest.mark.parametrize("port", [-1, 65536, 99999])
async def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(Invalid) as caught:
        async with serve(app_with(ALLOW), port=port):
            pass
    assert caught.value.code == "rpc.bad_port"


async def test_an_unknown_host_and_a_missing_file_are_refused() -> None:
    with pytest.raises(Invalid):
        async with serve(app_with(ALLOW), "no-such-host.invalid"):
            pass
    with pytest.raises(Invalid) as caught:
        async with serve(app_with(ALLOW), tls=ServerTls(Path("/nowhere/cert"), Path("/nowhere/key"))):
            pass
    assert caught.value.code == "rpc.no_such_file"
    with pytest.raises(Invalid):
        connect("host:1", ids=SystemIds(), tls=ClientTls(ca=Path("/nowhere/ca")))


async def test_an_exception_of_the_block_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with serve(app_with(ALLOW)):
            raise KeyError("mine")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("controller:7000", "http://controller:7000"),
        ("http://10.0.0.7:7000/", "http://10.0.0.7:7000"),
        ("https://controller", "https://controller"),
        ("[::1]:7000", "http://[::1]:7000"),
    ],
)
def test_an_address_needs_no_scheme(address: str, url: str) -> None:
    assert connect(address, ids=SystemIds()).address == url


def test_a_scheme_left_out_is_https_when_there_is_tls() -> None:
    assert connect("controller:7000", ids=SystemIds(), tls=ClientTls()).address == "https://controller:7000"


@pytest.mark.parametrize(
    "address",
    ["", "ftp://x", "a b", "host:port", "http://x/path", "user@host:1", "a:1\n", "a:65536", "http://a:99999"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(Invalid):
        connect(address, ids=SystemIds())


@pytest.mark.parametrize("token", ["", "canary two", "canary\n", "canary\u00e9"])
def test_a_token_that_cannot_travel_is_refused_without_being_told(token: str) -> None:
    with pytest.raises(Invalid) as caught:
        connect("x:1", ids=SystemIds(), token=token)
    assert "canary" not in repr(caught.value) + caught.value.hint


async def test_a_server_that_is_not_there_is_named() -> None:
    async with serve(app_with(ALLOW)) as server:
        address = server.address
    async with connect(address, ids=SystemIds()) as channel:
        for call in (channel.client(EchoClient).say(Ping()), anext(channel.client(EchoClient).watch(Ping()))):
            with pytest.raises(Retry) as caught:
                await call
            assert caught.value.code == "rpc.unreachable"
            assert address in caught.value.hint


async def test_static_tokens_know_their_owners_and_nobody_else() -> None:
    tokens = TokenAuthenticator({"one": Principal("a"), "two": Principal("b")})
    assert await tokens.authenticate("one") == Principal("a")
    assert await tokens.authenticate("two") == Principal("b")
    assert await tokens.authenticate("three") is None
    assert await tokens.authenticate("") is None


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import neorion.keel.rpc", ["connectrpc", "granian", "pyqwest"]),
        ("from neorion.keel.rpc import connect, AsgiApp, serve", ["granian"]),
    ],
)
def test_importing_the_client_does_not_load_the_server(code: str, absent: list[str]) -> None:
    check = f"{code}\nimport sys\nfound = [name for name in {absent!r} if name in sys.modules]\nassert not found, found"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_a_call_in_memory_starts_no_thread() -> None:
    """Runs in a process of its own: others here have threads already."""
    script = """
import os, anyio
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import in_memory

async def main():
    async with in_memory() as w:
        await w.client.say(Ping())
        assert [pong.count async for pong in w.client.watch(Ping(count=3))] == [0, 1, 2]
        assert len(os.listdir("/proc/self/task")) == 1

anyio.run(main)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
