"""Ports of pods, against a server that speaks the other half of the protocol."""

import struct
import time
import zlib
from collections.abc import AsyncIterator, Callable

import anyio
import pytest
from aiohttp import WSMsgType, web
from hypothesis import given, settings
from hypothesis import strategies as st

from neorion.keel.base import Deadline, Retry, Terminal
from neorion.keel.kube.streams import PodPort, forward, open_port
from neorion.keel.kube.streams.spdy import Data, GoAway, Ping, Reset, SpdyReader, Writer, data_frame, pong
from tests.keel.kube.stage import staged

pytestmark = pytest.mark.anyio

TARGET = PodPort("p", "n", 8080)
SYN_STREAM = b"\x80\x03\x00\x01"
PROTOCOL = "SPDY/3.1+portforward.k8s.io"


class Peer:
    """The pod's end of one connection."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self.opened: list[dict[str, str]] = []
        self.pings: list[int] = []

    async def frames(self) -> AsyncIterator[Data]:
        reader, unpack = SpdyReader(), zlib.decompressobj()
        async for message in self._socket:
            assert message.type is WSMsgType.BINARY
            data: bytes = message.data
            if data[:4] == SYN_STREAM:
                for opening in data.split(SYN_STREAM)[1:]:
                    length = int.from_bytes(opening[1:4], "big")
                    self.opened.append(headers(unpack.decompress(opening[14 : 4 + length])))
            for frame in reader.feed(data):
                if isinstance(frame, Data) and frame.stream == 3:
                    yield frame
                elif isinstance(frame, Ping):
                    self.pings.append(frame.number)

    async def send(self, *frames: bytes) -> None:
        # In pieces that do not respect frames, as from a network.
        joined = b"".join(frames)
        for start in range(0, len(joined), 1_000):
            await self._socket.send_bytes(joined[start : start + 1_000])


def headers(block: bytes) -> dict[str, str]:
    texts: list[str] = []
    rest = block[4:]
    while rest:
        (size,) = struct.unpack(">I", rest[:4])
        texts.append(rest[4 : 4 + size].decode())
        rest = rest[4 + size :]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def pod(play: Callable[[Peer], AsyncIterator[None]], peers: list[Peer] | None = None):
    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        peer = Peer(socket)
        if peers is not None:
            peers.append(peer)
        async for _ in play(peer):
            pass
        await socket.close()
        return socket

    return handle


async def shout(peer: Peer) -> AsyncIterator[None]:
    """Answers everything in capitals, once the client has said all it has to say."""
    heard = b""
    async for frame in peer.frames():
        heard += frame.data
        yield
        if frame.last:
            break
    await peer.send(
        data_frame(3, heard.upper()), data_frame(3, b"!", last=True), data_frame(1, b"", last=True)
    )


async def read_all(receive: Callable[[], object]) -> bytes:
    heard = b""
    try:
        while True:
            heard += await receive()  # pyright: ignore[reportGeneralTypeIssues] -- a coroutine of either stream
    except anyio.EndOfStream:
        return heard


async def test_both_sides_say_all_they_have_to_say():
    peers: list[Peer] = []
    async with staged(pod(shout, peers)) as client, open_port(client, TARGET) as stream:
        await stream.send(b"a" * 200_000)
        await stream.send(b"b")
        await stream.send_eof()
        assert await read_all(stream.receive) == b"A" * 200_000 + b"B!"
    assert [opened["streamtype"] for opened in peers[0].opened] == ["error", "data"]
    assert {opened["port"] for opened in peers[0].opened} == {"8080"}
    assert len({opened["requestid"] for opened in peers[0].opened}) == 1


async def test_pieces_are_no_larger_than_asked_for():
    async with staged(pod(shout)) as client, open_port(client, TARGET) as stream:
        await stream.send(b"hello")
        await stream.send_eof()
        assert await stream.receive(3) == b"HEL"
        assert await stream.receive(1) == b"L"


async def refuse(peer: Peer) -> AsyncIterator[None]:
    # The kubelet may close the connection before it says why.
    await peer.send(data_frame(3, b"", last=True))
    await peer.send(data_frame(1, b"connection refused"), data_frame(1, b"", last=True))
    yield


async def test_a_port_on_which_nobody_listens_is_named():
    async with staged(pod(refuse)) as client, open_port(client, TARGET) as stream:
        with pytest.raises(Retry) as refused:
            await stream.receive()
    assert refused.value.code == "kube.port"
    assert str(refused.value) == "Port 8080 of the pod: connection refused"


RESET = struct.pack(">IBBHII", 0x80030003, 0, 0, 8, 3, 5)
GO_AWAY = struct.pack(">IBBHII", 0x80030007, 0, 0, 8, 0, 0)


@pytest.mark.parametrize("last_words", [RESET, GO_AWAY, b""], ids=["reset", "goaway", "close"])
async def test_a_connection_that_breaks_is_not_the_end_of_the_stream(last_words: bytes):
    async def vanish(peer: Peer) -> AsyncIterator[None]:
        await peer.send(last_words)
        yield

    async with staged(pod(vanish)) as client, open_port(client, TARGET) as stream:
        with pytest.raises(Deadline) as lost:
            await stream.receive()
    assert lost.value.code == "kube.port_lost"


async def test_pings_are_answered():
    peers: list[Peer] = []

    async def bounce(peer: Peer) -> AsyncIterator[None]:
        await peer.send(pong(Ping(2)), data_frame(3, b"x"))
        async for frame in peer.frames():
            yield
            if frame.last:
                break

    async with staged(pod(bounce, peers)) as client, open_port(client, TARGET) as stream:
        assert await stream.receive() == b"x"
        await stream.send_eof()
        with pytest.raises(Deadline):
            await stream.receive()
    assert peers[0].pings == [2]


async def test_a_listener_serves_many_at_once_and_outlives_their_troubles():
    answers: list[bytes] = []

    async def call(port: int, text: bytes) -> None:
        async with await anyio.connect_tcp("127.0.0.1", port) as local:
            await local.send(text)
            await local.send_eof()
            answers.append(await read_all(local.receive))

    async with staged(pod(shout)) as client, forward(client, TARGET) as port:
        async with await anyio.connect_tcp("127.0.0.1", port) as rude:
            await rude.send(b"never mind")
        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(call, port, f"caller {number}".encode())
    assert sorted(answers) == [f"CALLER {number}!".encode() for number in range(8)]


async def test_a_pod_that_is_not_there_ends_the_connection_not_the_listener():
    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=404)

    async with staged(handle) as client, forward(client, TARGET) as port:
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", port) as local:
                assert await read_all(local.receive) == b""


async def test_whoever_forwards_hears_why_a_connection_broke():
    told: list[str] = []
    async with (
        staged(pod(refuse)) as client,
        forward(client, TARGET, tell=lambda _, why: told.append(why)) as port,
        await anyio.connect_tcp("127.0.0.1", port) as local,
    ):
        assert await read_all(local.receive) == b""
    assert told == ["Port 8080 of the pod: connection refused"]


def test_a_peer_of_another_version_is_refused():
    with pytest.raises(Terminal) as refused:
        list(SpdyReader().feed(struct.pack(">IBBH", 0x80020006, 0, 0, 0)))
    assert refused.value.code == "kube.spdy"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 2**31 - 1), st.binary(max_size=50), st.booleans())), st.data())
def test_frames_are_the_same_however_they_are_cut(sent: list[tuple[int, bytes, bool]], data: st.DataObject):
    joined = b"".join(data_frame(stream, body, last=last) for stream, body, last in sent)
    joined += Writer().open(5, {"a": "b"}) + pong(Ping(4)) + RESET + GO_AWAY
    reader = SpdyReader()
    found: list[object] = []
    while joined:
        cut = data.draw(st.integers(1, len(joined)))
        found += reader.feed(joined[:cut])
        joined = joined[cut:]
    assert found == [*(Data(*frame) for frame in sent), Ping(4), Reset(3), GoAway()]


async def intrude(peer: Peer) -> AsyncIterator[None]:
    """Sends data of streams that were never opened, and of one that has ended."""
    async for frame in peer.frames():
        yield
        if frame.last:
            break
    await peer.send(
        data_frame(7, b"never opened", last=True),
        struct.pack(">IB3sII", 0x80030003, 0, (8).to_bytes(3, "big"), 9, 1),
        data_frame(3, b"mine", last=True),
        data_frame(3, b"after the end"),
        data_frame(1, b"", last=True),
    )


@pytest.mark.attack("foreign-frames")
async def test_frames_of_other_streams_are_not_bytes_of_the_port():
    async with staged(pod(intrude)) as client, open_port(client, TARGET) as stream:
        await stream.send_eof()
        assert await read_all(stream.receive) == b"mine"


@pytest.mark.attack("foreign-frames")
def test_a_long_frame_in_small_pieces_costs_time_in_proportion():
    def cost_s(size: int) -> float:
        reader, frame = SpdyReader(), data_frame(3, bytes(size))
        begun = time.process_time()
        found = [one for at in range(0, len(frame), 64) for one in reader.feed(frame[at : at + 64])]
        assert found == [Data(3, bytes(size), last=False)]
        return time.process_time() - begun

    # Copied whole for each piece, eight times the bytes would cost sixty-four times as much.
    assert min(cost_s(4 << 20) for _ in range(3)) < 24 * min(cost_s(1 << 19) for _ in range(3))
