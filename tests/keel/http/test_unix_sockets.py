"""Servers that answer at a Unix socket."""

from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream

from neorion.keel.http.client import HttpTransport, Request, fetch
from neorion.keel.http.dialer import DialError

pytestmark = pytest.mark.anyio


async def test_a_server_at_a_socket_is_asked_like_any_other(tmp_path: Path):
    came: list[bytes] = []

    async def serve(stream: ByteStream) -> None:
        async with stream:
            for _ in range(2):
                came.append(await stream.receive())
                await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK")

    # A proxy of the environment has no say: there is none for sockets.
    transport = HttpTransport(f"unix://{tmp_path}/socket", proxy="http://127.0.0.1:9")
    async with (
        await anyio.create_unix_listener(tmp_path / "socket") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, serve)
        for _ in range(2):
            head, body = await fetch(transport, Request("GET", "/_ping"))
            assert (head.status, body) == (200, b"OK")
        await transport.aclose()
        group.cancel_scope.cancel()
    assert [request.splitlines()[:2] for request in came] == [
        [b"GET /_ping HTTP/1.1", b"Host: localhost"]
    ] * 2


async def test_a_socket_that_is_not_there_is_said_so(tmp_path: Path):
    with pytest.raises(DialError, match="No such file or directory"):
        await fetch(HttpTransport(f"unix://{tmp_path}/socket"), Request("GET", "/"))
