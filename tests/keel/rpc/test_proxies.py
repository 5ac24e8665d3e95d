"""Proxies of the environment: asked for others, never for this machine."""

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute

from neorion.keel.base import Error, Invalid
from neorion.keel.clock import SystemIds
from neorion.keel.http.client import Request, fetch
from neorion.keel.http.dialer import DialError
from neorion.keel.rpc import connect, http_transport
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import over_socket

pytestmark = pytest.mark.anyio

_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
# Nobody listens there.
_DEAD = "http://127.0.0.1:9"
# Nor there; it leads to this machine too, but it is not a loopback address.
_OTHER = "0.0.0.0:9"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.mark.parametrize("name", [*_NAMES[:3], "http_proxy"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_no_proxy_is_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch, name: str, host: str):
    monkeypatch.setenv(name, _DEAD)
    async with (
        over_socket() as world,
        connect(f"{host}:{world.port}", ids=SystemIds()) as channel,
    ):
        assert (await channel.client(EchoClient).look(Ping(text="here"))).text == "here"


async def test_a_proxy_is_asked_for_others_unless_they_are_spared(monkeypatch: pytest.MonkeyPatch):
    asked: list[bytes] = []

    async def refuse(stream: ByteStream) -> None:
        async with stream:
            asked.append((await stream.receive()).splitlines()[0])
            await stream.send(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")

    async def call(address: str) -> None:
        async with connect(address, ids=SystemIds()) as channel:
            with pytest.raises(Error):
                await channel.client(EchoClient).look(Ping())

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, refuse)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, no SQL
        # Without a scheme, as many write it.
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{port}")
        await call(_OTHER)
        for spared in ("0.0.0.0/8", "a, *"):
            monkeypatch.setenv("NO_PROXY", spared)
            await call(_OTHER)
        monkeypatch.delenv("NO_PROXY")
        transport = http_transport(f"http://{_OTHER}", direct=True)
        with pytest.raises(DialError):
            await fetch(transport, Request("GET", "/"))
        await transport.aclose()
        group.cancel_scope.cancel()
    (line,) = asked
    assert line.startswith(f"POST http://{_OTHER}/".encode())


async def test_a_proxy_that_is_no_address_is_told_as_such(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://")
    with pytest.raises(Invalid) as refused:
        http_transport("https://elsewhere")
    assert refused.value.code == "rpc.proxy"
