"""Runs commands in containers: input, output, terminal size and exit code."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import anyio
import msgspec

from neorion.keel.base import Deadline, Terminal
from neorion.keel.kube.client.api import Client
from neorion.keel.kube.core import POD
from neorion.keel.kube.errors import Status
from neorion.keel.kube.streams.messages import Messages, open_messages
from neorion.keel.run import only_error

PROTOCOL = "v5.channel.k8s.io"
# A longer message would delay keystrokes and size changes behind it.
FRAME_MAX = 32 * 1024
# The limit of `run` per stream; read larger outputs with `execute`.
OUTPUT_MAX = 16 * 2**20


class _Channel(IntEnum):
    """The first byte of each message. CLOSE is followed by the number of the channel that ends."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    STATUS = 3
    RESIZE = 4
    CLOSE = 255


class OutputStream(StrEnum):
    """The stream of an output chunk."""

    STDOUT = "stdout"
    STDERR = "stderr"


_OUTPUTS = {bytes((_Channel.STDOUT,)): OutputStream.STDOUT, bytes((_Channel.STDERR,)): OutputStream.STDERR}
_STATUS = bytes((_Channel.STATUS,))


@dataclass(frozen=True, slots=True)
class ExecOutput:
    """A chunk of output."""

    stream: OutputStream
    data: bytes


@dataclass(frozen=True, slots=True)
class ContainerRef:
    """A container that runs commands. `name` may be empty if the pod has one container."""

    pod: str
    namespace: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """The size of a terminal in characters."""

    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The whole output of a command and its exit code."""

    code: int
    stdout: bytes
    stderr: bytes


class ExecSession:
    """A running command: iterate for its output; `code` is set after the iteration.

    Unread output blocks the command, as with a pipe. Input sent to a command that has ended is dropped without an
    error.
    """

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self.code: int | None = None

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), FRAME_MAX):
            await self._send(_Channel.STDIN, data[start : start + FRAME_MAX])

    async def close_stdin(self) -> None:
        """Closes the command's input; its output continues."""
        await self._send(_Channel.CLOSE, bytes((_Channel.STDIN,)))

    async def resize(self, size: TerminalSize) -> None:
        form = {"Width": size.columns, "Height": size.rows}
        await self._send(_Channel.RESIZE, msgspec.json.encode(form))

    async def _send(self, channel: _Channel, data: bytes) -> None:
        # A command may end before it has read its input. Its output is still to be read.
        with suppress(Deadline):
            await self._messages.send(bytes((channel,)) + data)

    async def __aiter__(self) -> AsyncIterator[ExecOutput]:
        async for message in self._messages:
            # Streams are opened and closed by messages without data.
            channel, data = message[:1], message[1:]
            if channel == _STATUS:
                self.code = _exit_code(data)
                return
            if channel in _OUTPUTS and data:
                yield ExecOutput(_OUTPUTS[channel], data)
        raise Deadline(
            "kube.command_lost",
            "The connection broke before the command ended.",
            hint="The command may still run in the container.",
        )


@asynccontextmanager
async def execute(
    client: Client, where: ContainerRef, command: Sequence[str], *, stdin: bool = False, tty: bool = False
) -> AsyncGenerator[ExecSession]:
    """Runs a command in a container. With a `tty` all output is stdout. Leaving the block closes the streams."""
    params = [("command", word) for word in command]
    async with _process(client, "exec", where, [*params, *_stream_params(stdin=stdin, tty=tty)]) as process:
        yield process


@asynccontextmanager
async def attach(
    client: Client, where: ContainerRef, *, stdin: bool = False, tty: bool = False
) -> AsyncGenerator[ExecSession]:
    """Attaches to the streams of a container's main process, from now on."""
    async with _process(client, "attach", where, _stream_params(stdin=stdin, tty=tty)) as process:
        yield process


async def run(client: Client, where: ContainerRef, command: Sequence[str], stdin: bytes = b"") -> ExecResult:
    """Runs a command to its end and returns its output, up to 16 MiB of each stream."""
    kept = {OutputStream.STDOUT: bytearray(), OutputStream.STDERR: bytearray()}
    async with execute(client, where, command, stdin=bool(stdin)) as process:
        try:
            # In parallel: a command that writes before it has read its input would block.
            async with anyio.create_task_group() as group:
                if stdin:
                    group.start_soon(_feed, process, stdin)
                await _collect(process, command[0], kept)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as several:
            raise only_error(several) from None
    return ExecResult(process.code or 0, bytes(kept[OutputStream.STDOUT]), bytes(kept[OutputStream.STDERR]))


async def _feed(process: ExecSession, stdin: bytes) -> None:
    await process.write(stdin)
    await process.close_stdin()


async def _collect(process: ExecSession, program: str, kept: Mapping[OutputStream, bytearray]) -> None:
    async for output in process:
        output_bytes = kept[output.stream]
        output_bytes += output.data
        if len(output_bytes) > OUTPUT_MAX:
            raise Terminal(
                "kube.command_output",
                f"{program} wrote more than {OUTPUT_MAX} bytes to {output.stream}.",
                hint="Read its output in parts with `execute`.",
            )


@asynccontextmanager
async def _process(
    client: Client, what: str, where: ContainerRef, params: list[tuple[str, str]]
) -> AsyncGenerator[ExecSession]:
    params += [("container", where.name)] if where.name else []
    path = POD.path(where.namespace, where.pod, what)
    async with open_messages(client.transport, path, params, PROTOCOL) as messages:
        yield ExecSession(messages)


def _stream_params(*, stdin: bool, tty: bool) -> list[tuple[str, str]]:
    # A terminal has one output; the server rejects a request for a second.
    streams = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    return [(name, "true" if wanted else "false") for name, wanted in streams.items()]


def _exit_code(data: bytes) -> int:
    try:
        status = msgspec.json.decode(data, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status(message="the final message is not a Status")
    if status.status == "Success":
        return 0
    codes = [cause.message for cause in status.details.causes if cause.reason == "ExitCode"]
    if codes and codes[0].lstrip("-").isdecimal():
        return int(codes[0])
    # Container runtimes prefix the errors of other programs; the cause comes last.
    why = (status.message or status.reason).rpartition("unable to start container process: ")[2]
    raise Terminal(
        "kube.command_failed",
        f"The command could not be run: {why.removesuffix(': unknown')}.",
        hint="Check that the container runs and has the program.",
    )
