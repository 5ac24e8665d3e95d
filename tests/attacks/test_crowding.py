"""No caller crowds out another: strangers, users and machines have budgets of their own."""

import http.client
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from neorion.keel.base import Duration, Invalid, Retry
from neorion.keel.clock import SystemClock, SystemIds
from neorion.keel.rpc import (
    AsgiApp,
    MemoryTransport,
    Principal,
    RequestLimits,
    RpcService,
    TokenAuthenticator,
    connect,
)
from neorion.keel.rpc import app as rpc_app
from neorion.keel.rpc.admission import Admission, Lane
from neorion.keel.rpc.descriptors import RESERVED, connections_allowed
from tests.attacks import h2
from tests.keel.rpc.gen.echo_client import EchoClient
from tests.keel.rpc.gen.echo_connect import EchoASGIApplication
from tests.keel.rpc.gen.echo_pb import Ping
from tests.keel.rpc.test_http import Answer, ask, read_answer, request
from tests.keel.rpc.world import ALLOW, TOKEN, EchoService, World, over_socket

pytestmark = pytest.mark.anyio
MACHINES = RequestLimits(member_roles=frozenset({"worker"}))
STREAMS = 520


async def held_streams(stack: AsyncExitStack, port: int) -> None:
    """Two connections of a stranger, each with 520 requests for a probe whose bodies never come."""
    for _ in range(2):
        stream = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        numbers = range(1, 2 * STREAMS, 2)
        await stream.send(h2.settings() + b"".join(h2.open_get(number, "/health") for number in numbers))
        # The server has read them when it has answered something.
        await stream.receive()


async def say(w: World) -> str:
    with anyio.fail_after(30):
        return (await w.client.say(Ping(text="beat"))).text


@pytest.mark.attack("held-requests")
async def test_a_thousand_held_probes_cost_no_machine_its_heartbeat() -> None:
    async with over_socket(MACHINES) as w, AsyncExitStack() as stack:
        await held_streams(stack, w.port)
        for _ in range(20):
            assert await say(w) == "beat"
        assert (await ask(w, request("GET", "/health"))).status == 200


@pytest.mark.attack("held-requests")
async def test_a_server_that_waits_for_the_bodies_of_probes_loses_its_probes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc_app, "_WITHOUT_BODY", frozenset[str]())
    async with over_socket(MACHINES) as w, AsyncExitStack() as stack:
        await held_streams(stack, w.port)
        while (await ask(w, request("GET", "/health"))).status != 429:
            pass
        # The second wall still stands: probes have no lane in common with machines.
        assert await say(w) == "beat"


@pytest.mark.attack("smuggling")
async def test_the_body_of_a_probe_is_not_taken_for_another_request() -> None:
    async with over_socket() as w, await anyio.connect_tcp("127.0.0.1", w.port) as stream:
        hidden = request("GET", "/broken")
        await stream.send(request("GET", "/health", hidden) + request("GET", "/health?who=second"))
        answers = [await read_answer(stream)]
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            answers.append(await read_answer(stream))
        assert [answer.status for answer in answers] in ([200], [200, 200])


class Crowd:
    """A server for a worker and two users, whose calls wait until they are let go."""

    def __init__(self, limits: RequestLimits) -> None:
        self.echo = EchoService()
        people = {name: Principal(name, frozenset({"user"})) for name in ("ann", "bob")}
        people["worker-1"] = Principal("worker-1", frozenset({"worker"}))
        allow = {**ALLOW, "Wait": {"user", "worker"}, "Watch": {"user", "worker"}}
        service = RpcService(EchoASGIApplication, self.echo, allow)
        self.app = AsgiApp(
            [service], ids=SystemIds(), authenticator=TokenAuthenticator(people), limits=limits
        )


@asynccontextmanager
async def crowd(limits: RequestLimits, polls: int) -> AsyncGenerator[tuple[MemoryTransport, Crowd]]:
    """So many long polls of ann, all of them in progress or refused."""
    it = Crowd(limits)
    async with MemoryTransport(it.app) as transport, anyio.create_task_group() as group:
        settled = 0

        async def poll() -> None:
            nonlocal settled
            try:
                await client(transport, "ann").wait(Ping())
            except Retry:
                settled += 1

        for _ in range(polls):
            group.start_soon(poll)
        with anyio.fail_after(30):
            while settled + len(it.app._admission.calls) < polls:
                await anyio.lowlevel.checkpoint()
        yield transport, it
        it.echo.go.set()


def client(transport: MemoryTransport, token: str) -> EchoClient:
    return connect("memory", ids=SystemIds(), token=token, transport=transport).client(EchoClient)


CROWDED = RequestLimits(member_roles=frozenset({"worker"}), calls=40, calls_each=10)


@pytest.mark.attack("crowding")
async def test_the_long_polls_of_a_user_leave_room_for_machines_and_other_users() -> None:
    async with crowd(CROWDED, 50) as (transport, it):
        assert len(it.app._admission.calls) == 10
        with pytest.raises(Retry) as refused:
            await client(transport, "ann").say(Ping())
        assert refused.value.code == "rpc.busy"
        assert refused.value.after == Duration.of(seconds=1)
        for name in ("bob", "worker-1"):
            assert (await client(transport, name).say(Ping(text=name))).text == name


@pytest.mark.attack("crowding")
async def test_with_one_lane_for_all_the_same_polls_refuse_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_lane(admission: Admission, *_caller: object, **_method: object) -> Lane:
        return admission._user_calls

    monkeypatch.setattr(Admission, "_lane", one_lane)
    async with crowd(RequestLimits(calls=40, calls_each=1000), 50) as (transport, _):
        with pytest.raises(Retry):
            await client(transport, "worker-1").say(Ping())


@pytest.mark.attack("crowding")
async def test_a_machine_has_a_limit_too() -> None:
    few = RequestLimits(member_roles=frozenset({"worker"}), member_calls_each=0)
    async with MemoryTransport(Crowd(few).app) as transport:
        with pytest.raises(Retry):
            await client(transport, "worker-1").say(Ping())
        await client(transport, "ann").say(Ping())


@pytest.mark.attack("crowding")
async def test_whoever_may_not_call_takes_up_no_room() -> None:
    async with over_socket(RequestLimits(calls=0)) as w:
        path = "/neorion.tests.rpc.v1.Echo/Say"
        held = request("POST", path, b"x" * 100, content_type="application/proto")[:-50]
        assert (await ask(w, held)).status == 401
        assert w.app._admission.calls == ()


async def say_in_parts(parts: int) -> Answer:
    """The answer to a valid call whose body comes one byte at a time."""
    body = Ping(text="x" * parts).to_binary()
    head = f"POST /neorion.tests.rpc.v1.Echo/Say HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n"
    async with over_socket() as w, await anyio.connect_tcp("127.0.0.1", w.port) as stream:
        await stream.send(
            head.encode() + b"content-type: application/proto\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        chunks = (b"1\r\n%c\r\n" % byte for byte in body)
        with anyio.fail_after(60):
            await stream.send(b"".join(chunks) + b"0\r\n\r\n")
            return await read_answer(stream)


@pytest.mark.attack("held-requests")
async def test_a_body_in_countless_parts_is_refused() -> None:
    answer = await say_in_parts(20_000)
    assert answer.status == 400
    assert b"in more than 16384 parts" in answer.body


async def test_a_body_in_many_parts_is_read() -> None:
    assert (await say_in_parts(10_000)).status == 200


# Connections that are only held open.

SERVER = """
import os, resource, sys, anyio
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
from neorion.keel.clock import SystemClock, SystemIds
from neorion.keel.rpc import ANYONE, AsgiApp, RouteResponse, Route, descriptors, serve
descriptors.RESERVED = int(sys.argv[2])
async def store(request):
    # As a store does: files of its own, while connections are open.
    for descriptor in [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]:
        os.close(descriptor)
    return RouteResponse(b"ok")
async def main():
    app = AsgiApp(routes=[Route("GET", "/store", store, frozenset({ANYONE}))], ids=SystemIds())
    async with serve(app) as server:
        print(server.port, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""


@contextmanager
def idle_connections(port: int, count: int) -> Generator[None]:
    """Connections of a stranger, one after the other: a burst overflows the kernel's queue, which drops them."""
    with ExitStack() as stack:
        # Where the server accepts no more, the queue fills up and a connection waits.
        with suppress(TimeoutError):
            for _ in range(count):
                idle = stack.enter_context(socket.socket())
                idle.settimeout(5)
                idle.connect(("127.0.0.1", port))
        yield


def answers_among_idle(files: int, reserved: int) -> set[int]:
    """The answers to a connection that was first, while a stranger opens as many more as the server has files."""
    command = [sys.executable, "-c", SERVER, str(files), str(reserved)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=20)) as first:
                assert get(first) == 200
                with idle_connections(port, files):
                    wait_for_open_files(server.pid, files - reserved - 5)
                    return {get(first) for _ in range(200)}
        finally:
            server.kill()


def wait_for_open_files(pid: int, count: int) -> None:
    """Until the server has accepted what it will: it does so beside its answers."""
    clock, folder = SystemClock(), Path(f"/proc/{pid}/fd")
    end = clock.monotonic() + 30
    while len([*folder.iterdir()]) < count:
        assert clock.monotonic() < end, "the server does not accept the idle connections"


def get(connection: http.client.HTTPConnection) -> int:
    connection.request("GET", "/store")
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.mark.attack("idle-connections")
def test_idle_connections_leave_the_server_its_files() -> None:
    assert answers_among_idle(files=400, reserved=256) == {200}


@pytest.mark.attack("idle-connections")
def test_without_a_reserve_they_take_its_files() -> None:
    assert 500 in answers_among_idle(files=400, reserved=0)


@pytest.mark.attack("idle-connections")
def test_connections_are_compared_with_the_limit_on_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(1024, 4096)]

    def get(_what: int) -> tuple[int, int]:
        return limits[-1]

    def put(_what: int, new: tuple[int, int]) -> None:
        limits.append(new)

    monkeypatch.setattr(resource, "getrlimit", get)
    monkeypatch.setattr(resource, "setrlimit", put)
    assert connections_allowed(1000) == 1000
    assert limits[-1] == (1000 + RESERVED, 4096)
    assert connections_allowed(16_384) == 4096 - RESERVED
    limits.append((RESERVED + 10, RESERVED + 10))
    with pytest.raises(Invalid) as refused:
        connections_allowed(16_384)
    assert refused.value.code == "rpc.few_files"
