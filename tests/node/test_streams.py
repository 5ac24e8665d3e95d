"""Into pods and out of them, with the kubectl that people use."""

from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream

from neorion.keel.base import Terminal
from tests.node.pods import MINUTES, NEEDS, SLEEP, Kubectl, pod, web

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]


async def test_exec_passes_input_output_and_the_exit_code(kubectl: Kubectl):
    await kubectl.run(pod("box", SLEEP))
    assert await kubectl("exec", "-i", "box", "--", "tr", "a-z", "A-Z", say="loud") == "LOUD"
    with pytest.raises(Terminal, match="exit code 7"):
        await kubectl("exec", "box", "--", "sh", "-c", "exit 7")


async def test_logs_are_followed_while_they_are_written(kubectl: Kubectl):
    await kubectl.run(
        pod("talker", "echo first; until test -e /go; do sleep 0.1; done; echo second; sleep 100000")
    )
    words = [*kubectl.command, "logs", "--follow", "talker"]
    async with await anyio.open_process([str(word) for word in words]) as process:
        assert process.stdout is not None
        text = ""
        async for piece in TextReceiveStream(process.stdout):
            text += piece
            if text == "first\n":
                await kubectl("exec", "talker", "--", "touch", "/go")
            if text.endswith("second\n"):
                break
        process.terminate()
    assert text == "first\nsecond\n"


async def test_a_port_is_forwarded(kubectl: Kubectl):
    await kubectl.run(pod("web", web()))
    words = [*kubectl.command, "port-forward", "pod/web", ":8080"]
    async with await anyio.open_process([str(word) for word in words]) as process:
        assert process.stdout is not None
        # It says: Forwarding from 127.0.0.1:PORT and where to.
        line = await TextReceiveStream(process.stdout).receive()
        port = int(line.split(" -> ")[0].rpartition(":")[2])
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET / HTTP/1.0\r\n\r\n")
            assert b"200 OK" in await stream.receive()
        process.terminate()


async def test_files_are_copied_both_ways(kubectl: Kubectl, tmp_path: Path):
    await kubectl.run(pod("box", SLEEP))
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(bytes(range(256)) * 4096)
    await kubectl("cp", str(there), "box:/tmp/file")
    await kubectl("cp", "box:/tmp/file", str(back))
    assert back.read_bytes() == there.read_bytes()
