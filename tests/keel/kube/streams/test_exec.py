"""Commands in containers, against a server that plays the kubelet's part."""

import json
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest
import uvloop
from aiohttp import WSMsgType, web

from neorion.keel.base import Deadline, NotFound, Terminal
from neorion.keel.kube.client import Client
from neorion.keel.kube.streams import (
    ContainerRef,
    ExecOutput,
    ExecSession,
    OutputStream,
    TerminalSize,
    attach,
    execute,
    run,
)
from neorion.keel.kube.streams import exec as exec_module
from tests.keel.kube.stage import Handler, staged, status

pytestmark = pytest.mark.anyio

WHERE = ContainerRef("p", "n", "main")
SUCCESS: dict[str, object] = {"status": "Success"}
Kubelet = Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]


def exited(code: str) -> dict[str, object]:
    causes = [{"reason": "ExitCode", "message": code}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "message": "no", "details": {"causes": causes}}


def kubelet(play: Kubelet, protocol: str = "v5.channel.k8s.io") -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(protocol,))
        await socket.prepare(request)
        await play(socket, request)
        await socket.close()
        return socket

    return handle


async def say(socket: web.WebSocketResponse, channel: int, data: bytes) -> None:
    await socket.send_bytes(bytes((channel,)) + data)


async def end(socket: web.WebSocketResponse, status: dict[str, object]) -> None:
    await say(socket, 3, json.dumps(status).encode())


async def cat(socket: web.WebSocketResponse, _: web.Request) -> None:
    """Gives back its input, and the sizes of its terminal on stderr, until the input ends."""
    async for message in socket:
        assert message.type is WSMsgType.BINARY
        channel, data = message.data[0], message.data[1:]
        if channel == 0:
            await say(socket, 1, data)
        elif channel == 4:
            await say(socket, 2, data)
        elif channel == 255:
            assert data == b"\0"
            break
    await end(socket, SUCCESS)


async def outputs(process: ExecSession) -> list[ExecOutput]:
    return [output async for output in process]


async def collected(client: Client) -> list[ExecOutput]:
    async with execute(client, WHERE, ["x"]) as running:
        return await outputs(running)


async def test_a_command_that_ends_before_its_input_is_heard_to_its_end():
    async def play(socket: web.WebSocketResponse, request: web.Request) -> None:
        await say(socket, 1, b"out")
        await end(socket, exited("3"))
        assert request.transport is not None
        request.transport.close()

    async with staged(kubelet(play)) as client, execute(client, WHERE, ["x"], stdin=True) as running:
        for _ in range(1000):
            await running.write(b"more than it wants")
            await anyio.lowlevel.checkpoint()
        await running.close_stdin()
        assert await outputs(running) == [ExecOutput(OutputStream.STDOUT, b"out")]
        assert running.code == 3


async def test_a_command_says_things_and_ends_with_a_code():
    asked: list[tuple[str, list[tuple[str, str]]]] = []

    async def play(socket: web.WebSocketResponse, request: web.Request) -> None:
        asked.append((request.path, list(request.query.items())))
        # Streams begin with empty messages.
        for channel, data in ((1, b""), (2, b""), (1, b"out"), (2, b"err"), (1, b"more")):
            await say(socket, channel, data)
        await end(socket, exited("7"))

    async with staged(kubelet(play)) as client, execute(client, WHERE, ["sh", "-c", "a b"]) as running:
        said = await outputs(running)
    assert said == [
        ExecOutput(OutputStream.STDOUT, b"out"),
        ExecOutput(OutputStream.STDERR, b"err"),
        ExecOutput(OutputStream.STDOUT, b"more"),
    ]
    assert running.code == 7
    ((path, query),) = asked
    assert path == "/api/v1/namespaces/n/pods/p/exec"
    assert [value for name, value in query if name == "command"] == ["sh", "-c", "a b"]
    assert dict(query)["container"] == "main"
    assert (dict(query)["stdin"], dict(query)["stderr"], dict(query)["tty"]) == ("false", "true", "false")


async def test_input_reaches_the_command_whole_and_its_end_is_seen():
    sent = bytes(range(256)) * 1_000
    async with staged(kubelet(cat)) as client:
        done = await run(client, WHERE, ["cat"], sent)
    assert (done.code, done.stdout, done.stderr) == (0, sent, b"")


async def test_much_input_and_as_much_output_do_not_hold_each_other_up():
    much = bytes(15 * 2**20)
    async with staged(kubelet(cat)) as client:
        with anyio.fail_after(60):
            done = await run(client, WHERE, ["cat"], stdin=much)
    assert done.stdout == much


async def test_a_server_that_never_begins_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("neorion.keel.kube.client.transport.REQUEST_S_MAX", 0.05)

    async def handle(request: web.Request) -> web.StreamResponse:
        del request
        await anyio.sleep_forever()
        raise AssertionError

    async with staged(handle) as client:
        with pytest.raises(Deadline) as slow, anyio.fail_after(30):
            await collected(client)
    assert slow.value.code == "kube.slow"


def test_streams_run_on_uvloop_too():
    async def there_and_back() -> bytes:
        async with staged(kubelet(cat)) as client:
            return (await run(client, WHERE, ["cat"], b"x" * 100_000)).stdout

    assert uvloop.run(there_and_back()) == b"x" * 100_000


async def test_a_terminal_has_one_output_and_a_size():
    async with staged(kubelet(cat)) as client, attach(client, WHERE, stdin=True, tty=True) as running:
        await running.resize(TerminalSize(columns=120, rows=40))
        await running.close_stdin()
        (size,) = await outputs(running)
    assert json.loads(size.data) == {"Width": 120, "Height": 40}


async def test_output_that_nobody_reads_holds_up_the_command():
    written = 0

    async def chatter(socket: web.WebSocketResponse, _: web.Request) -> None:
        nonlocal written
        with anyio.move_on_after(1):
            while True:
                await say(socket, 1, b"x" * 65_536)
                written += 65_536
        await end(socket, SUCCESS)

    async with staged(kubelet(chatter)) as client, execute(client, WHERE, ["yes"]) as running:
        with anyio.move_on_after(1.5):
            await anyio.sleep_forever()
        # What fits into the kernel's buffers and a little more, of the gigabytes that a second would give.
        assert written < 64 * 2**20
        assert sum([len(output.data) async for output in running]) >= written


async def test_more_output_than_run_keeps_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exec_module, "OUTPUT_MAX", 100)
    async with staged(kubelet(cat)) as client:
        with pytest.raises(Terminal) as refused:
            await run(client, WHERE, ["cat"], b"x" * 101)
    assert refused.value.code == "kube.command_output"


async def test_a_command_that_cannot_start_is_an_error():
    async def play(socket: web.WebSocketResponse, _: web.Request) -> None:
        await end(
            socket, {"status": "Failure", "reason": "InternalError", "message": "no such file", "code": 500}
        )

    async with staged(kubelet(play)) as client:
        with pytest.raises(Terminal) as refused:
            await collected(client)
    assert refused.value.code == "kube.command_failed"
    assert "no such file" in str(refused.value)


async def test_a_program_that_is_not_there_is_told_without_the_way_by_which_it_became_known():
    told = (
        "Internal error occurred: error executing command in container: failed to exec in container: failed to start exec"
        ' "665e": OCI runtime exec failed: exec failed: unable to start container process: exec: "nope": executable file'
        " not found in $PATH: unknown"
    )

    async def play(socket: web.WebSocketResponse, _: web.Request) -> None:
        await end(socket, {"status": "Failure", "reason": "InternalError", "message": told, "code": 500})

    async with staged(kubelet(play)) as client:
        with pytest.raises(Terminal) as refused:
            await collected(client)
    assert refused.value.sentence == (
        'The command could not be run: exec: "nope": executable file not found in $PATH.'
    )


async def test_a_connection_that_breaks_is_not_the_end_of_the_command():
    async def play(socket: web.WebSocketResponse, request: web.Request) -> None:
        await say(socket, 1, b"so far")
        assert request.transport is not None
        request.transport.abort()

    async with staged(kubelet(play)) as client:
        with pytest.raises(Deadline) as lost:
            await collected(client)
    assert lost.value.code == "kube.command_lost"


async def test_a_server_of_another_protocol_is_refused():
    async with staged(kubelet(cat, "v4.channel.k8s.io")) as client:
        with pytest.raises(Terminal) as refused:
            await collected(client)
    assert refused.value.code == "kube.protocol"


async def test_a_refused_handshake_gives_the_servers_own_words():
    async def handle(_: web.Request) -> web.Response:
        return status(404, "NotFound", 'pods "p" not found', name="p", kind="pods")

    async with staged(handle) as client:
        with pytest.raises(NotFound) as missing:
            await collected(client)
    assert str(missing.value) == 'pods "p" not found'
