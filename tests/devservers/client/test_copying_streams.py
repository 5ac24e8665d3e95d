"""How copies speak to a pod: nothing is said to a command that may have ended, for that breaks the connection."""

import io
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath

import anyio
import pytest
from aiohttp import WSMsgType, web

from neorion.devservers.client.api import DevServerApi
from neorion.devservers.client.file_copy import _pack_there, _unpack_there
from neorion.keel.kube.streams import ContainerRef
from tests.keel.kube.stage import Handler, LeapClock, staged

pytestmark = pytest.mark.anyio

WHERE = ContainerRef("p", "n", "main")
SUCCESS = b'\x03{"status": "Success"}'
Play = Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]


def kubelet(play: Play) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
        await socket.prepare(request)
        await play(socket, request)
        await socket.close()
        return socket

    return handle


async def test_who_packs_there_says_nothing():
    async def play(socket: web.WebSocketResponse, request: web.Request) -> None:
        assert request.query["stdin"] == "false"
        with anyio.move_on_after(0.1):
            said = await socket.receive()
            # As a kernel does, to which data comes for a program that has closed.
            assert request.transport is not None
            request.transport.abort()
            raise AssertionError(said)
        await socket.send_bytes(b"\x01archive")
        await socket.send_bytes(SUCCESS)

    archive = io.BytesIO()
    async with staged(kubelet(play)) as client:
        await _pack_there(DevServerApi(client, "n", LeapClock()), WHERE, PurePosixPath("data"), archive)
    assert archive.getvalue() == b"archive"


async def test_who_unpacks_there_hears_all_that_is_sent(tmp_path: Path):
    """The script itself, with an archive that is followed by more than tar reads."""
    padding = bytes(4 * 2**20)
    (tmp_path / "data").write_bytes(b"kept")
    packed = await anyio.run_process(["tar", "-cf", "-", "-C", str(tmp_path), "data"])

    async def play(socket: web.WebSocketResponse, request: web.Request) -> None:
        command = request.query.getall("command")
        given = bytearray()
        async for message in socket:
            assert message.type is WSMsgType.BINARY
            if message.data[0] == 255:
                break
            given += message.data[1:]
        async with await anyio.open_process([*command[:-1], str(tmp_path / "there")]) as process:
            assert process.stdin is not None
            # Fails where the command ends before its input.
            await process.stdin.send(bytes(given))
            await process.stdin.aclose()
            assert await process.wait() == 0
        await socket.send_bytes(SUCCESS)

    async with staged(kubelet(play)) as client:
        fleet = DevServerApi(client, "n", LeapClock())
        await _unpack_there(fleet, WHERE, "there", io.BytesIO(packed.stdout + padding))
    assert (tmp_path / "there/data").read_bytes() == b"kept"
