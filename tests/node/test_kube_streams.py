"""Streams of `keel.kube` into real containers."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from neorion.keel.base import Error, Retry, Terminal
from neorion.keel.kube import PodLogOptions
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.streams import (
    ContainerRef,
    PodPort,
    TerminalSize,
    attach,
    execute,
    forward,
    open_port,
    run,
)
from tests.node.pods import MINUTES, NEEDS, SLEEP, Kubectl, pod, web

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

# A stream that hangs is a failure long before the test's own time is over.
PATIENCE_S = 120


@pytest.fixture
async def client(kubectl: Kubectl) -> AsyncGenerator[Client]:
    with anyio.fail_after(MINUTES.args[0]):
        async with connect(read_kubeconfig([kubectl.cluster.kubeconfig]).cluster()) as made:
            yield made


def inside(kubectl: Kubectl, name: str) -> ContainerRef:
    return ContainerRef(name, kubectl.namespace, "main")


def listening(port: int) -> dict[str, Any]:
    """What makes a pod Ready only when something listens there, without connecting to it."""
    seen = f"grep -qi ':{port:04x} .* 0A ' /proc/net/tcp /proc/net/tcp6"
    # A second, which is what it has if nobody says so, is little for a new process on a busy machine.
    return {
        "readinessProbe": {"exec": {"command": ["sh", "-c", seen]}, "periodSeconds": 1, "timeoutSeconds": 20}
    }


async def test_a_command_has_input_two_outputs_and_an_exit_code(kubectl: Kubectl, client: Client):
    await kubectl.run(pod("box", SLEEP))
    box = inside(kubectl, "box")
    sent = bytes(range(256)) * 10_000
    done = await run(client, box, ["sh", "-c", "cat; echo oops >&2; exit 7"], sent)
    assert (done.code, done.stdout, done.stderr) == (7, sent, b"oops\n")
    assert (await run(client, box, ["true"])).code == 0
    with pytest.raises(Terminal) as refused:
        await run(client, box, ["no-such-program"])
    assert refused.value.code == "kube.command_failed"


async def test_a_terminal_is_as_large_as_it_is_told_to_be(kubectl: Kubectl, client: Client):
    await kubectl.run(pod("box", SLEEP))
    said = b""
    with anyio.fail_after(PATIENCE_S):
        async with execute(client, inside(kubectl, "box"), ["sh"], stdin=True, tty=True) as shell:
            await shell.resize(TerminalSize(columns=123, rows=45))
            # The size travels beside the input, not in it: ask until it has arrived.
            await shell.write(b"until stty size | grep '45 123'; do sleep 0.1; done; exit 3\n")
            async for output in shell:
                said += output.data
    assert b"45 123\r\n" in said
    assert shell.code == 3


async def test_one_attaches_to_what_already_runs(kubectl: Kubectl, client: Client):
    await kubectl.run(pod("echo", "while read line; do echo heard $line; done", container={"stdin": True}))
    with anyio.fail_after(PATIENCE_S):
        async with attach(client, inside(kubectl, "echo"), stdin=True) as process:
            await process.write(b"hello\n")
            assert (await anext(aiter(process))).data == b"heard hello\n"


async def test_a_log_is_followed_while_it_is_written(kubectl: Kubectl, client: Client):
    await kubectl.run(pod("talker", "echo first; until test -e /tmp/go; do sleep 0.1; done; echo second"))
    text = b""
    with anyio.fail_after(PATIENCE_S):
        async with client.logs("talker", kubectl.namespace, PodLogOptions(follow=True)) as pieces:
            async for piece in pieces:
                text += piece
                if text == b"first\n":
                    assert (await run(client, inside(kubectl, "talker"), ["touch", "/tmp/go"])).code == 0  # noqa: S108 -- in the container
    assert text == b"first\nsecond\n"


async def test_a_listener_here_is_a_port_there(kubectl: Kubectl, client: Client):
    await kubectl.run(pod("web", web(), container=listening(8080)))
    answers: list[bytes] = []

    async def ask(port: int) -> None:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET / HTTP/1.0\r\n\r\n")
            answers.append(b"".join([piece async for piece in stream]))

    with anyio.fail_after(PATIENCE_S):
        async with (
            forward(client, PodPort("web", kubectl.namespace, 8080)) as port,
            anyio.create_task_group() as group,
        ):
            for _ in range(5):
                group.start_soon(ask, port)
    assert len(answers) == 5
    assert all(b" 200 OK" in answer and answer.endswith(b"hello\n") for answer in answers)


async def test_a_stream_to_a_port_carries_much_both_ways(kubectl: Kubectl, client: Client):
    script = "while true; do nc -l -p 9000 -e head -c 1000000; done"
    await kubectl.run(pod("mirror", script, container=listening(9000)))
    sent = bytes(range(250)) * 4_000
    with anyio.fail_after(PATIENCE_S):
        async with open_port(client, PodPort("mirror", kubectl.namespace, 9000)) as stream:
            back = bytearray()
            async with anyio.create_task_group() as group:
                group.start_soon(stream.send, sent)
                async for piece in stream:
                    back += piece
    assert back == sent


async def test_a_port_without_a_listener_and_a_pod_that_is_not_there_are_errors(
    kubectl: Kubectl, client: Client
):
    await kubectl.run(pod("box", SLEEP))
    with anyio.fail_after(PATIENCE_S):
        async with open_port(client, PodPort("box", kubectl.namespace, 9999)) as stream:
            with pytest.raises(Retry) as refused:
                await stream.receive()
        assert refused.value.code == "kube.port"
        with pytest.raises(Error) as missing:
            await run(client, inside(kubectl, "nobody"), ["true"])
    assert missing.value.code == "kube.not_found"
