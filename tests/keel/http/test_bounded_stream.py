"""How a connection ends."""

import asyncio

import anyio
import pytest
from anyio.abc import ByteStream

from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.kube.client.websocket import WebSocket
from tests.keel.kube.client.test_connections import listening

pytestmark = pytest.mark.anyio
# More than the buffers of two kernels hold.
MUCH = 16 * 2**20


async def linked(address: str) -> BoundedStream:
    host, _, port = address.removeprefix("http://").partition(":")
    _, link = await asyncio.get_running_loop().create_connection(BoundedStream, host, int(port))
    return link


async def test_what_was_sent_before_the_end_arrives():
    finished, came, whole = anyio.Event(), 0, anyio.Event()

    async def serve(stream: ByteStream) -> None:
        nonlocal came
        await finished.wait()
        async for piece in stream:
            came += len(piece)
        whole.set()

    async with listening(serve) as address:
        link = await linked(address)
        link.write(b"x" * MUCH)
        link.finish()
        finished.set()
        with anyio.fail_after(30):
            await whole.wait()
            await link.gone()
    assert came == MUCH


class Tap(asyncio.Transport):
    """Where bytes would come from; remembers whether they are let."""

    def __init__(self) -> None:
        super().__init__()
        self.open = True

    def pause_reading(self) -> None:
        self.open = False

    def resume_reading(self) -> None:
        self.open = True


async def test_who_reads_slowly_holds_the_peer_up():
    link, tap = BoundedStream(), Tap()
    link.connection_made(tap)
    for _ in range(2):
        while tap.open:
            link.data_received(bytes(64 * 1024))
        assert 256 * 1024 < len(await link.some()) < 2**20
        assert tap.open


async def test_who_never_reads_holds_nobody_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("neorion.keel.http.bounded_stream._LEAVING_S", 0.05)

    async def deaf(stream: ByteStream) -> None:
        del stream
        await anyio.sleep_forever()

    async with listening(deaf) as address:
        link = await linked(address)
        link.write(b"x" * MUCH)
        link.finish()
        with anyio.fail_after(30):
            await link.gone()


async def test_the_last_message_is_heard_of_who_is_gone_already():
    async def serve(stream: ByteStream) -> None:
        await stream.send(b"\x82\x04last" + b"\x88\x02\x03\xe8")

    async with listening(serve) as address:
        link = await linked(address)
        with anyio.fail_after(30):
            await link.gone()
        socket = WebSocket(link, b"")
        assert await socket.receive() == b"last"
        assert await socket.receive() is None
