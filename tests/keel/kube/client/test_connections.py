"""Connections to servers of all kinds: kept, ended, slow, through proxies, and by those that are no API servers."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute

from neorion.keel.base import Deadline, Duration, Error, Invalid, Retry, Terminal
from neorion.keel.http import connection_pool, dialer
from neorion.keel.http.bounded_stream import BoundedStream
from neorion.keel.kube import MergePatch
from neorion.keel.kube.client import CaBundle, Client, ClusterConfig, StaticToken
from neorion.keel.kube.core import CONFIG_MAP
from tests.keel.kube.client.test_credentials import Authority, Door
from tests.keel.kube.stage import LeapClock, client_of, serving

pytestmark = pytest.mark.anyio

BODY = b'{"metadata":{"name":"a"}}'
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
Serve = Callable[[ByteStream], Awaitable[None]]


@asynccontextmanager
async def listening(serve: Serve) -> AsyncGenerator[str]:
    """A server that says what a test wants, byte for byte. Gives the address."""

    async def served(stream: ByteStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await serve(stream)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, served)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, no SQL
        yield f"http://127.0.0.1:{port}"
        group.cancel_scope.cancel()


def saying(*answers: bytes) -> tuple[Serve, list[int]]:
    """One answer for each request of a connection, then its end. Also how many requests each connection brought."""
    brought: list[int] = []

    async def serve(stream: ByteStream) -> None:
        brought.append(0)
        mine = len(brought) - 1
        for answer in answers:
            await stream.receive()
            brought[mine] += 1
            await stream.send(answer)

    return serve, brought


async def names(server: str, count: int = 1) -> list[str]:
    async with client_of(ClusterConfig(server), LeapClock()) as client:
        return [(await client.get(CONFIG_MAP, "a", "n")).meta.name for _ in range(count)]


@pytest.mark.parametrize(
    "answer",
    [
        GOOD,
        b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
        b"HTTP/1.1 200 OK\r\n\r\n" + BODY,
        b"HTTP/1.0 200 OK\r\n\r\n" + BODY,
    ],
    ids=["length", "continue", "chunks", "until the end", "old"],
)
async def test_a_body_is_read_whichever_way_its_end_is_told(answer: bytes):
    serve, _ = saying(answer)
    async with listening(serve) as server:
        assert await names(server) == ["a"]


async def test_one_connection_carries_request_after_request():
    serve, brought = saying(*[GOOD] * 5)
    async with listening(serve) as server:
        assert await names(server, 5) == ["a"] * 5
    assert brought == [5]


async def test_a_connection_that_ends_while_it_rests_is_replaced_unseen():
    serve, brought = saying(GOOD)
    async with listening(serve) as server:
        assert await names(server, 3) == ["a"] * 3
    assert brought == [1, 1, 1]


async def test_a_connection_that_rested_too_long_is_not_trusted():
    serve, brought = saying(GOOD, GOOD)
    clock = LeapClock()
    async with listening(serve) as server, client_of(ClusterConfig(server), clock) as client:
        for _ in range(2):
            await client.get(CONFIG_MAP, "a", "n")
            clock.advance(Duration.of(seconds=61))
    assert brought == [1, 1]


async def test_what_nobody_asked_for_is_never_taken_for_the_next_answer():
    first = iter([GOOD + GOOD.replace(b'"a"', b'"x"')])

    async def serve(stream: ByteStream) -> None:
        while True:
            await stream.receive()
            await stream.send(next(first, GOOD))

    async with listening(serve) as server, client_of(ClusterConfig(server), LeapClock()) as client:
        with suppress(Error):
            await client.get(CONFIG_MAP, "a", "n")
        assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"


async def test_half_an_answer_behind_another_is_not_the_beginning_of_the_next():
    half, seen, turns = GOOD.replace(b'"a"', b'"x"'), anyio.Event(), iter([1])

    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        if next(turns, None) is None:
            await stream.send(GOOD)
            return
        # The body comes apart from its head, and with it the beginning of what nobody asked for.
        await stream.send(GOOD[: -len(BODY)])
        await seen.wait()
        await stream.send(BODY + half[:20])
        await stream.receive()
        await stream.send(half[20:])

    async with listening(serve) as server, client_of(ClusterConfig(server), LeapClock()) as client:
        with suppress(Error):
            async with client.logs("p", "n") as pieces:
                seen.set()
                async for _ in pieces:
                    pass
        assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"


async def test_who_stops_in_the_middle_of_a_body_leaves_nothing_to_the_next():
    began = anyio.Event()

    async def serve(stream: ByteStream) -> None:
        if not began.is_set():
            await stream.receive()
            await stream.send(GOOD[:-3])
            began.set()
            await anyio.sleep_forever()
        await stream.receive()
        await stream.send(GOOD)

    async with listening(serve) as server, client_of(ClusterConfig(server), LeapClock()) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.get, CONFIG_MAP, "a", "n")
            await began.wait()
            group.cancel_scope.cancel()
        assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"


async def test_a_server_may_have_an_address_of_six_parts():
    door = Door()
    async with serving(door.answer, host="::1") as server:
        assert server.startswith("http://[::1]:")
        assert await names(server) == ["a"]
    assert door.seen[0].host == server.removeprefix("http://")


async def test_a_read_on_a_connection_that_has_just_ended_is_repeated_at_once():
    brought: list[int] = []

    async def serve(stream: ByteStream) -> None:
        brought.append(0)
        mine = len(brought) - 1
        while brought != [2]:
            await stream.receive()
            brought[mine] += 1
            if brought != [2]:
                await stream.send(GOOD)

    clock = LeapClock()
    async with listening(serve) as server, client_of(ClusterConfig(server), clock) as client:
        for _ in range(2):
            assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"
    assert brought == [2, 1]
    assert clock.slept == []


async def replaced(client: Client) -> None:
    await client.replace(CONFIG_MAP.raw, {"metadata": {"name": "a", "namespace": "n"}})


async def deleted(client: Client) -> None:
    await client.delete(CONFIG_MAP, "a", "n")


async def patched(client: Client) -> None:
    await client.patch(CONFIG_MAP, "a", MergePatch({"data": {}}), "n")


@pytest.mark.parametrize("write", [patched, replaced, deleted])
async def test_a_write_on_a_connection_that_has_just_ended_is_not_repeated(
    write: Callable[[Client], Awaitable[None]],
):
    asked: list[bytes] = []

    async def serve(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(GOOD)
        asked.append(await stream.receive())

    async with listening(serve) as server, client_of(ClusterConfig(server), LeapClock()) as client:
        await client.get(CONFIG_MAP, "a", "n")
        with pytest.raises(Deadline) as lost:
            await write(client)
    assert lost.value.code == "kube.lost"
    assert len(asked) == 1


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", b"x" * 200_000],
    ids=["ssh", "length", "endless"],
)
async def test_who_is_no_api_server_is_told_apart(answer: bytes):
    serve, _ = saying(answer)
    async with listening(serve) as server:
        with pytest.raises(Terminal) as strange:
            await names(server)
    assert strange.value.code == "kube.no_answer"
    assert strange.value.sentence.startswith(f"What listens at {server} does not answer like an API server: ")


async def test_half_an_answer_is_a_lost_one():
    async with (
        listening(saying(GOOD[:-3])[0]) as server,
        client_of(ClusterConfig(server), LeapClock()) as client,
    ):
        with pytest.raises(Deadline) as lost:
            await client.patch(CONFIG_MAP, "a", MergePatch({}), "n")
    assert lost.value.sentence == f"The connection to {server} broke before the answer was complete."


async def test_a_server_that_does_not_shake_hands_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dialer, "CONNECT_S_MAX", 0.05)

    async def deaf(stream: ByteStream) -> None:
        del stream
        await anyio.sleep_forever()

    async with listening(deaf) as address:
        server = address.replace("http", "https")
        with pytest.raises(Retry) as away:
            await names(server)
    assert away.value.sentence == f"The API server at {server} cannot be reached: no connection in time."


async def test_who_leaves_when_hands_have_just_been_shaken_leaves_nothing_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
):
    authority, connected = Authority(), BoundedStream.connection_made
    leaving = anyio.CancelScope()

    def left(link: BoundedStream, transport: asyncio.BaseTransport) -> None:
        connected(link, transport)
        leaving.cancel()

    async with (
        serving(Door().answer, authority.tls) as server,
        client_of(ClusterConfig(server, CaBundle(authority.pem)), LeapClock()) as client,
    ):
        with monkeypatch.context() as hasty, leaving:
            hasty.setattr(BoundedStream, "connection_made", left)
            await client.get(CONFIG_MAP, "a", "n")
        assert leaving.cancelled_caught
        # Over a socket that has the number of the one before.
        assert (await client.get(CONFIG_MAP, "a", "n")).meta.name == "a"


async def test_a_server_without_tls_where_tls_is_spoken_is_out_of_reach():
    async with serving(Door().answer) as address:
        with pytest.raises(Retry) as away:
            await names(address.replace("http", "https"))
    assert away.value.code == "kube.unreachable"
    assert "WRONG_VERSION_NUMBER" in away.value.sentence


async def test_the_next_address_of_a_server_is_tried_where_the_first_is_deaf(monkeypatch: pytest.MonkeyPatch):
    async with serving(Door().answer) as address:
        port = int(address.rpartition(":")[2])
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")

        def resolved(host: str, *_: object, flags: int = 0, **__: object) -> list[object]:
            if flags:
                raise socket.gaierror
            assert host == "many.example"
            return [(*kind, ("127.0.0.2", 1)), (*kind, ("127.0.0.1", port))]

        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        assert await names(f"http://many.example:{port}") == ["a"]


async def test_a_prefix_in_the_servers_address_stays_before_each_path():
    door = Door()
    async with serving(door.answer) as server:
        assert await names(f"{server}/clusters/c-1") == ["a"]
    assert door.seen[0].path == "/clusters/c-1/api/v1/namespaces/n/configmaps/a"


@pytest.mark.parametrize("server", ["https://", "https://host:port", "https://host:0", "https://[::1"])
async def test_an_address_that_is_none_is_refused(server: str):
    with pytest.raises(Invalid) as refused:
        await names(server)
    assert refused.value.code == "http.address"


async def test_a_proxy_that_is_none_is_refused_without_its_password():
    with pytest.raises(Invalid) as refused:
        async with client_of(ClusterConfig("https://h", proxy="socks5://me:secret@proxy:1080"), LeapClock()):
            pytest.fail("opened")
    assert str(refused.value).startswith('"proxy:1080" is not a valid address of a proxy.')


async def test_a_token_that_would_smuggle_a_header_never_leaves():
    door = Door()
    async with serving(door.answer) as server:
        cluster = ClusterConfig(server, source=StaticToken("a\r\nX-Evil: b"))
        async with client_of(cluster, LeapClock()) as client:
            with pytest.raises(Invalid) as refused:
                await client.get(CONFIG_MAP, "a", "n")
    assert refused.value.code == "http.header"
    assert door.seen == []


async def test_who_finds_all_connections_in_use_hears_of_that_and_not_of_a_slow_server(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(connection_pool, "CONNECTIONS_MAX", 1)
    brought: list[bytes] = []
    taken = anyio.Event()

    async def serve(stream: ByteStream) -> None:
        brought.append(await stream.receive())
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
        await anyio.sleep_forever()

    async def watch(client: Client) -> None:
        async with client.watch(CONFIG_MAP, "n"):
            taken.set()
            await anyio.sleep_forever()

    async with (
        listening(serve) as server,
        client_of(ClusterConfig(server), LeapClock()) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(watch, client)
        await taken.wait()
        monkeypatch.setattr(connection_pool, "SLOT_S_MAX", 0.0)
        with pytest.raises(Retry) as crowded:
            await client.get(CONFIG_MAP, "a", "n")
        assert (crowded.value.code, len(brought)) == ("kube.crowded", 1)
        assert "All 1 connections" in crowded.value.sentence
        group.cancel_scope.cancel()
