"""Commands on all ranks of a distributed server at once, with each line marked by its rank."""

import os
import sys
from typing import TypedDict, Unpack

import anyio

from neorion.devservers.cli.commands.access_impl import (
    CopyRequest,
    LogOptions,
    check_command_given,
    copy,
    copy_of,
    execute,
    logs,
    request_of,
)
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.cli.terminal import write_all
from neorion.devservers.client import DevServerApi, container, copy_to, exec_stream, pod_logs
from neorion.keel.base import Error, Invalid
from neorion.keel.cli.exit_codes import Exit
from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.terminal import printable
from neorion.keel.kube import PodLogOptions
from neorion.keel.kube.streams import ContainerRef, OutputStream


class ExecOptions(TypedDict):
    """Options of `devctl exec`."""

    tty: bool
    rank: int | None
    every: bool


class MarkedLines:
    """Writes whole lines of one rank to file descriptors, each with the rank before it."""

    def __init__(self, rank: int, *targets: int) -> None:
        self._mark = f"[{rank}] ".encode()
        self._targets = targets
        self._rest = b""

    async def write(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            await self._put(line)

    async def close(self) -> None:
        """Writes a last line that has no end."""
        if self._rest:
            await self._put(self._rest)
            self._rest = b""

    async def _put(self, line: bytes) -> None:
        for target in self._targets:
            # On a terminal a line must not do more than be read.
            harmless = printable(line.decode(errors="replace")).encode() if os.isatty(target) else line
            await write_all(target, self._mark + harmless + b"\n")


async def execute_all(fleet: DevServerApi, name: str, command: tuple[str, ...], *copies: int) -> int:
    """Starts nowhere unless all ranks run. Gives the exit code of the lowest rank that failed.

    Each of `copies` is a file descriptor that gets all output too.
    """
    check_command_given(name, command)
    places = [await container(one, name) for one in await every_rank(fleet, name)]
    sys.stdout.flush()
    codes = dict.fromkeys(range(len(places)), 0)

    async def run(rank: int, where: ContainerRef) -> None:
        lines = {
            OutputStream.STDOUT: MarkedLines(rank, sys.stdout.fileno(), *copies),
            OutputStream.STDERR: MarkedLines(rank, sys.stderr.fileno(), *copies),
        }
        codes[rank] = await _run_marked(fleet, lines, where, command)

    async with anyio.create_task_group() as group:
        for rank, where in enumerate(places):
            group.start_soon(run, rank, where)
    return next((code for code in codes.values() if code), 0)


async def logs_of_all(fleet: DevServerApi, name: str, request: PodLogOptions) -> None:
    sys.stdout.flush()

    async def show(rank: int, one: DevServerApi) -> None:
        lines = MarkedLines(rank, sys.stdout.fileno())
        try:
            async for piece in pod_logs(one, name, request):
                await lines.write(piece)
        except Error as error:
            await MarkedLines(rank, sys.stderr.fileno()).write(f"{error.sentence}\n".encode())
        await lines.close()

    async with anyio.create_task_group() as group:
        for rank, one in enumerate(await every_rank(fleet, name)):
            group.start_soon(show, rank, one)


async def copy_to_all(fleet: DevServerApi, out: Output, asked: CopyRequest) -> None:
    if not asked.up:
        raise Invalid(
            "devservers.copy_sides",
            "Files of several ranks cannot be copied to one path.",
            hint="Name one rank: devctl cp --rank 0 NAME:PATH TARGET.",
        )
    ranks = await every_rank(fleet, asked.name)
    for one in ranks:
        await copy_to(one, asked.name, asked.here, asked.there)
    out.say(f"{asked.here} is on {len(ranks)} ranks of {asked.name}.")


async def every_rank(fleet: DevServerApi, name: str) -> list[DevServerApi]:
    """The servers as each rank of this one is reached; a server of one machine has one."""
    distributed = (await fleet.server(name)).spec.distributed
    return [fleet.at_rank(rank) for rank in range(distributed.nodes if distributed is not None else 1)]


async def _run_marked(
    fleet: DevServerApi,
    lines: dict[OutputStream, MarkedLines],
    where: ContainerRef,
    command: tuple[str, ...],
) -> int:
    try:
        async with exec_stream(fleet.client, where, command) as process:
            await process.close_stdin()
            async for output in process:
                await lines[output.stream].write(output.data)
            return process.code or 0
    except Error as error:
        # The other ranks go on: what they write says more of what happened.
        await lines[OutputStream.STDERR].write(f"{error.sentence}\n".encode())
        return Exit.NOT_STARTED
    finally:
        for one in lines.values():
            await one.close()


def exec_command(
    out: Output, name: str, command: tuple[str, ...], where: ClusterSelector, **how: Unpack[ExecOptions]
) -> int:
    words = check_command(command)
    _check_one_or_all(how["rank"], every=how["every"])
    if how["every"]:
        if how["tty"]:
            raise Invalid(
                "devservers.no_terminal",
                "One terminal cannot serve all ranks.",
                hint="Leave out --tty, or name one rank: devctl exec -t NAME --rank 0 -- COMMAND.",
            )
        return run_with_api(out, where, lambda fleet: execute_all(fleet, name, words))
    rank, tty = how["rank"], how["tty"]
    return run_with_api(out, where, lambda fleet: execute(fleet.at_rank(rank), out, name, words, tty=tty))


def cp_command(
    out: Output, source: str, target: str, where: ClusterSelector, *, rank: int | None, every: bool
) -> None:
    request = copy_of(source, target)
    _check_one_or_all(rank, every=every)
    if every:
        run_with_api(out, where, lambda fleet: copy_to_all(fleet, out, request))
    else:
        run_with_api(out, where, lambda fleet: copy(fleet.at_rank(rank), out, request))


def logs_command(out: Output, name: str, where: ClusterSelector, **which: Unpack[LogOptions]) -> None:
    request = request_of(which)
    rank = which["rank"]
    _check_one_or_all(rank, every=which["every"])
    if which["every"]:
        run_with_api(out, where, lambda fleet: logs_of_all(fleet, name, request))
    else:
        run_with_api(out, where, lambda fleet: logs(fleet.at_rank(rank), name, request))


def check_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """The words of the user's command, without the dashes before it."""
    # click leaves the dashes where options may not follow arguments.
    words = command[1:] if command[0] == "--" else command
    if words is command and command[0].startswith("-"):
        raise Invalid(
            "devservers.option_place",
            f'"{command[0]}" stands behind the name of the server, where its command begins.',
            hint="Write -- before the command: devctl exec [OPTIONS] NAME -- COMMAND.",
        )
    return words


def _check_one_or_all(rank: int | None, *, every: bool) -> None:
    if every and rank is not None:
        raise Invalid("devservers.rank", "--rank and --all are given together.", hint="Choose one of them.")
