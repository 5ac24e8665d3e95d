"""What a client makes of servers that answer badly, and of connections that end."""

import asyncio
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute

from neorion.keel.base import Duration, Error, Retry, Terminal
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import connect, serve
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_pb import Ping, Pong
from tests.keel.rpc.world import TOKEN, make_app

pytestmark = pytest.mark.anyio

Serve = Callable[[ByteStream], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncGenerator[EchoClient]:
    async def served(stream: ByteStream) -> None:
        async with stream:
            await stream.receive()
            await serve(stream)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, served)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, no SQL
        async with connect(f"127.0.0.1:{port}", ids=SystemIds(), timeout=Duration.of(seconds=20)) as channel:
            yield channel.client(EchoClient)
        group.cancel_scope.cancel()


def answer(body: bytes, kind: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def envelope(flag: int, body: bytes) -> bytes:
    return struct.pack(">BI", flag, len(body)) + body


PONG = Pong(text="one").to_binary()
PROTO, STREAM = "application/proto", "application/connect+proto"


@pytest.mark.parametrize(
    ("sent", "family", "code"),
    [
        (answer(b"<html>", "text/html"), Terminal, "rpc.unreadable"),
        (answer(b"\xff\xff\xff", PROTO), Terminal, "rpc.unreadable"),
        (answer(b"<html>", "text/html", "502 Bad Gateway"), Retry, "rpc.unavailable"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nContent-Length: 9\r\n\r\nx",
            Retry,
            "rpc.broken",
        ),
        (b"", Retry, "rpc.broken"),
        (b"SSH-2.0-OpenSSH\r\n", Retry, "rpc.broken"),
    ],
    ids=["another server", "garbage", "proxy", "cut off", "silent end", "not HTTP"],
)
async def test_a_bad_answer_to_a_call_is_told(sent: bytes, family: type[Error], code: str) -> None:
    async def serves(stream: ByteStream) -> None:
        await stream.send(sent)

    async with listening(serves) as client:
        with pytest.raises(family) as caught:
            await client.say(Ping())
        assert caught.value.code == code
        assert "127.0.0.1" in caught.value.hint


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (envelope(0, PONG), "rpc.broken"),
        (envelope(0, PONG) + b"\0\0", "rpc.broken"),
        (envelope(0, PONG) + envelope(1, PONG), "rpc.unreadable"),
        (envelope(0, PONG) + struct.pack(">BI", 0, 2**31), "rpc.unreadable"),
        (envelope(0, PONG) + envelope(2, b'{"error": {"code": "aborted", "message": "m"}}'), "rpc.aborted"),
        (envelope(0, PONG) + envelope(2, b"?"), "rpc.internal"),
    ],
    ids=["no end", "half an envelope", "compressed", "too large", "an error", "not JSON"],
)
async def test_a_bad_end_of_a_stream_is_told_after_what_came_before(sent: bytes, code: str) -> None:
    async def serves(stream: ByteStream) -> None:
        await stream.send(answer(sent, STREAM))

    async with listening(serves) as client:
        stream = client.watch(Ping())
        assert (await anext(stream)).text == "one"
        with pytest.raises(Error) as caught:
            await anext(stream)
        assert caught.value.code == code


async def test_a_stream_in_single_bytes_is_whole() -> None:
    async def serves(stream: ByteStream) -> None:
        for byte in answer(envelope(0, PONG) + envelope(0, PONG) + envelope(2, b"{}"), STREAM):
            await stream.send(bytes([byte]))

    async with listening(serves) as client:
        assert [pong.text async for pong in client.watch(Ping())] == ["one", "one"]


async def test_calls_one_after_the_other_share_a_connection() -> None:
    """Also a stream that was read to its end."""
    opened = 0
    _, app = make_app()
    async with serve(app) as server, connect(server.address, ids=SystemIds(), token=TOKEN) as channel:
        client = channel.client(EchoClient)
        links: set[object] = set()
        for _ in range(5):
            await client.say(Ping())
            assert [pong.count async for pong in client.watch(Ping(count=3))] == [0, 1, 2]
            (pool,) = cast("Any", channel._transports[0])._pools.values()
            links |= pool._open
        opened = len(links)
    assert opened == 1


async def test_a_server_that_was_started_anew_is_called_at_once() -> None:
    """The old connection has ended, and is not used for a call that may not be sent twice."""
    _, app = make_app()
    async with serve(app) as server:
        port = server.port
        channel = connect(server.address, ids=SystemIds(), token=TOKEN)
        client = channel.client(EchoClient)
        await client.say(Ping())
    _, app = make_app()
    async with serve(app, port=port):
        assert (await client.say(Ping(text="again"))).text == "again"
        await channel.__aexit__(None, None, None)


def test_a_channel_serves_one_event_loop_after_the_other() -> None:
    async def main() -> None:
        _, app = make_app()
        async with serve(app, port=0) as server:
            channel = connect(server.address, ids=SystemIds(), token=TOKEN)
            client = channel.client(EchoClient)
            await client.say(Ping())

            def elsewhere() -> str:
                async def call() -> str:
                    async with channel:
                        return (await client.say(Ping(text="another loop"))).text

                return asyncio.run(call())

            assert await anyio.to_thread.run_sync(elsewhere) == "another loop"
            assert (await client.say(Ping(text="here"))).text == "here"
            await channel.__aexit__(None, None, None)

    asyncio.run(main())
