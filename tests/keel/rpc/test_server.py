"""A real server: many readers, certificates, and going down without losing a call."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import trustme

from neorion.keel.base import Duration, Error, Invalid, Retry
from neorion.keel.clock import SystemIds
from neorion.keel.http.client import IDLE_S
from neorion.keel.rpc import ClientTls, RequestLimits, ServerTls, connect, serve
from tests.attacks import h2
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.world import TOKEN, EchoService, make_app, over_socket

pytestmark = pytest.mark.anyio


async def test_a_thousand_streams_are_read_at_once() -> None:
    async with over_socket() as w:
        waiting, firsts, lasts = anyio.Event(), 0, 0

        async def read() -> None:
            nonlocal firsts, lasts
            stream = w.client.watch(Ping())
            assert (await anext(stream)).text == "first"
            firsts += 1
            if firsts == 1000:
                waiting.set()
            assert [pong.text async for pong in stream] == ["last"]
            lasts += 1

        async with anyio.create_task_group() as tasks:
            for _ in range(1000):
                tasks.start_soon(read)
            await waiting.wait()
            assert (await w.client.say(Ping(text="calls pass between them"))).text
            w.echo.go.set()
        assert lasts == 1000


@asynccontextmanager
async def with_certificates(folder: Path) -> AsyncGenerator[tuple[EchoService, str, Path]]:
    ours, theirs = trustme.CA(), trustme.CA()
    for name, authority in (("ours", ours), ("theirs", theirs)):
        authority.cert_pem.write_to_path(folder / f"{name}-ca.pem")
        issued = authority.issue_cert("worker.neorion", "127.0.0.1")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
    echo, app = make_app(RequestLimits(header_time=Duration.of(ms=500)))
    files = ServerTls(folder / "ours.pem", folder / "ours.key", folder / "ours-ca.pem")
    async with serve(app, tls=files) as server:
        yield echo, server.address, folder


async def test_a_client_with_our_certificate_is_served(tmp_path: Path) -> None:
    async with with_certificates(tmp_path) as (echo, address, files):
        tls = ClientTls(files / "ours-ca.pem", files / "ours.pem", files / "ours.key")
        async with connect(address, ids=SystemIds(), token=TOKEN, tls=tls) as channel:
            client = channel.client(EchoClient)
            assert (await client.say(Ping(text="trusted"))).text == "trusted"
            assert [pong.count async for pong in client.watch(Ping(count=3))] == [0, 1, 2]
        # The certificate opens the connection; who calls is told by the token alone.
        assert echo.seen[0][0] == "worker-1"


@pytest.mark.parametrize(
    ("ca", "shown"),
    [("ours", None), ("ours", "theirs"), ("theirs", "ours")],
    ids=["none", "wrong", "distrusted"],
)
async def test_without_the_right_certificate_no_call_arrives(
    tmp_path: Path, ca: str, shown: str | None
) -> None:
    async with with_certificates(tmp_path) as (echo, address, files):
        cert, key = (files / f"{shown}.pem", files / f"{shown}.key") if shown else (None, None)
        tls = ClientTls(files / f"{ca}-ca.pem", cert, key)
        async with connect(address, ids=SystemIds(), token=TOKEN, tls=tls) as channel:
            with pytest.raises(Error) as caught:
                await channel.client(EchoClient).say(Ping())
        assert caught.value.code in ("rpc.tls", "rpc.unreachable", "rpc.broken")
        assert address in caught.value.hint
        assert echo.done == 0


async def test_a_file_that_is_no_certificate_is_refused_by_both_sides(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    good = trustme.CA().issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    good.cert_chain_pems[0].write_to_path(cert)
    good.private_key_pem.write_to_path(key)
    for tls in (ServerTls(junk, junk), ServerTls(cert, junk), ServerTls(cert, key, junk)):
        with pytest.raises(Invalid) as caught:
            async with serve(make_app()[1], tls=tls):
                pass
        assert caught.value.code == "rpc.bad_certificate"
    for tls in (ClientTls(cert, junk, junk), ClientTls(cert, cert, None)):
        with pytest.raises(Invalid) as caught:
            connect("x:1", ids=SystemIds(), tls=tls)
        assert caught.value.code == "rpc.bad_certificate"


async def test_going_down_under_load_loses_no_acknowledged_call() -> None:
    acknowledged = refused = 0
    echo, app = make_app()
    busy, down = anyio.Event(), anyio.Event()

    async def caller(address: str) -> None:
        nonlocal acknowledged, refused
        async with connect(address, ids=SystemIds(), token=TOKEN) as channel:
            client = channel.client(EchoClient)
            while not down.is_set():
                try:
                    await client.say(Ping())
                except Retry:
                    refused += 1
                    await anyio.lowlevel.checkpoint()
                else:
                    acknowledged += 1
                    if acknowledged == 200:
                        busy.set()

    async with anyio.create_task_group() as tasks:
        async with serve(app) as server:
            for _ in range(16):
                tasks.start_soon(caller, server.address)
            await busy.wait()
        down.set()
    # Every answer that arrived was given by a handler that ran to its end, and none ran afterwards.
    assert acknowledged >= 200
    assert refused > 0
    assert echo.done >= acknowledged
    # A handler whose answer was lost would show here: granian closes a connection only between answers.
    assert echo.done == acknowledged


async def test_a_call_in_flight_is_answered_although_the_server_goes_down() -> None:
    echo, app = make_app()
    answers: list[str] = []
    async with anyio.create_task_group() as tasks, serve(app) as server:

        async def call() -> None:
            async with connect(server.address, ids=SystemIds(), token=TOKEN) as channel:
                answers.append((await channel.client(EchoClient).wait(Ping(text="late"))).text)

        async def release_once_draining() -> None:
            while not app.draining:
                await anyio.lowlevel.checkpoint()
            echo.go.set()

        tasks.start_soon(call)
        await echo.begun.wait()
        tasks.start_soon(release_once_draining)
    assert answers == ["late"]


async def test_a_server_whose_process_fails_answers_what_is_in_flight_and_is_gone_at_once() -> None:
    echo, app = make_app()
    answers: list[str] = []

    async def call(address: str) -> None:
        async with connect(address, ids=SystemIds(), token=TOKEN) as channel:
            answers.append((await channel.client(EchoClient).wait(Ping(text="late"))).text)

    async def release_once_draining() -> None:
        while not app.draining:
            await anyio.lowlevel.checkpoint()
        echo.go.set()

    # Half of what it takes to give up on a server of which nothing is heard.
    with anyio.fail_after(app.limits.header_time.seconds / 2):
        async with anyio.create_task_group() as outside:
            with anyio.CancelScope() as life:
                async with serve(app) as server:
                    outside.start_soon(call, server.address)
                    await echo.begun.wait()
                    outside.start_soon(release_once_draining)
                    life.cancel()
                    await anyio.sleep_forever()
    assert answers == ["late"]


async def test_streams_are_told_to_reconnect_when_the_server_goes_down() -> None:
    _, app = make_app()
    ends: list[str] = []
    started = anyio.Event()
    async with anyio.create_task_group() as tasks, serve(app) as server:

        async def watch() -> None:
            async with connect(server.address, ids=SystemIds(), token=TOKEN) as channel:
                try:
                    async for _ in channel.client(EchoClient).watch(Ping()):
                        started.set()
                except Retry as error:
                    ends.append(error.code)

        tasks.start_soon(watch)
        await started.wait()
    assert ends == ["rpc.draining"]


@pytest.mark.parametrize(
    "half",
    [b"POST / HT", h2.settings() + b"".join(h2.open_get(number, "/health") for number in range(1, 100, 2))],
    ids=["headers", "streams"],
)
async def test_a_client_with_half_a_request_does_not_keep_the_server_up(half: bytes) -> None:
    _, app = make_app()
    with anyio.fail_after(app.limits.header_time.seconds / 2):
        async with serve(app) as server:
            stream = await anyio.connect_tcp("127.0.0.1", server.port)
            await stream.send(half)
            # A call on a newer connection is answered after the server has read the older one.
            async with connect(server.address, ids=SystemIds(), token=TOKEN) as channel:
                await channel.client(EchoClient).say(Ping())
        await stream.aclose()


async def test_an_idle_connection_outlives_the_pause_of_a_client_and_not_the_server() -> None:
    """If servers closed first, clients would send into nothing now and then."""
    _, app = make_app()
    assert app.limits.header_time.seconds > IDLE_S
    async with serve(app) as server:
        stream = await anyio.connect_tcp("127.0.0.1", server.port)
        await stream.send(b"GET /nowhere HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await stream.receive()).startswith(b"HTTP/1.1 404")
    assert [piece async for piece in stream if b"HTTP" in piece] == []
    await stream.aclose()
