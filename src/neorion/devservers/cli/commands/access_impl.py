"""Commands that connect to a server: ssh, exec, logs, copies and forwarded ports."""

import codecs
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypedDict

import anyio
from msgspec import Struct

from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import parse_timeout, run_with_api
from neorion.devservers.cli.terminal import carry, carry_terminal, has_terminal, write_all
from neorion.devservers.client import (
    DevServerApi,
    SkippedEntry,
    container,
    copy_from,
    copy_to,
    exec_stream,
    find_ssh_login,
    pod_logs,
    port_forward,
    run_ssh,
)
from neorion.keel.base import Invalid, did_you_mean
from neorion.keel.cli.kit import Output
from neorion.keel.cli.kit.terminal import printable
from neorion.keel.kube import PodLogOptions
from neorion.keel.kube.streams import PodPort

_SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh -l")
_PORT_MAX = 65_535
# What a copy lacks is told one by one, up to so many.
_TOLD_MAX = 20


class LogOptions(TypedDict):
    """Options of `devctl logs`: a part of the log of a server."""

    follow: bool
    previous: bool
    tail: int | None
    since: str | None
    rank: int | None
    every: bool


async def open_shell(fleet: DevServerApi, out: Output, name: str, program: str) -> int:
    """By SSH where the server lets one of the user's keys in, else by exec. Input from a pipe is a script either way."""
    way = (
        None if program else find_ssh_login(await fleet.server(name), Path(out.env.get("HOME", "")) / ".ssh")
    )
    if way is not None:
        return await run_ssh(fleet, way)
    command = (program,) if program else _SHELL
    return await execute(fleet, out, name, command, tty=has_terminal())


async def execute(fleet: DevServerApi, out: Output, name: str, command: tuple[str, ...], *, tty: bool) -> int:
    if tty and not has_terminal():
        raise Invalid(
            "devservers.no_terminal",
            "There is no terminal here to give to the command.",
            hint="Leave out --tty.",
        )
    check_command_given(name, command)
    where = await container(fleet, name)
    term = out.env.get("TERM", "")
    if tty and term:
        command = ("env", f"TERM={term}", *command)
    async with exec_stream(fleet.client, where, command, tty=tty) as process:
        await (carry_terminal if tty else carry)(process)
        return process.code or 0


def check_command_given(name: str, command: tuple[str, ...]) -> None:
    if not command:
        raise Invalid(
            "devservers.no_command", "No command is given.", hint=f"Name one: devctl exec {name} -- ls."
        )


class CopyRequest(Struct, frozen=True):
    """Files on their way: `up` to the server, or down from it."""

    name: str
    up: bool
    here: Path
    there: str


def copy_of(source: str, target: str) -> CopyRequest:
    """`NAME:PATH` is on the server. A path of this machine that holds a colon is written with a slash before it."""
    (from_name, from_path), (to_name, to_path) = _split(source), _split(target)
    if bool(from_name) == bool(to_name):
        raise Invalid(
            "devservers.copy_sides",
            "One of the two must be on a server, as NAME:PATH, and the other here.",
            hint="Write it as in: devctl cp data.csv mydev:data.csv.",
        )
    if not (from_path if to_name else to_path):
        raise Invalid(
            "devservers.path",
            '"" names no file or folder of this machine.',
            hint="Name one, or this folder by a dot.",
        )
    if to_name:
        return CopyRequest(to_name, True, Path(from_path), to_path)
    return CopyRequest(from_name, False, Path(to_path), from_path)


async def copy(fleet: DevServerApi, out: Output, asked: CopyRequest) -> None:
    if asked.up:
        await copy_to(fleet, asked.name, asked.here, asked.there)
        out.say(f"{asked.here} is on {asked.name}.")
    else:
        left = await copy_from(fleet, asked.name, asked.there, asked.here)
        for sentence in _missing(left):
            out.warn(sentence)
        out.say(f"{asked.name}:{asked.there} is here.")


def _missing(left: Sequence[SkippedEntry]) -> Iterator[str]:
    for one in left[:_TOLD_MAX]:
        what = f"it is a link out of the copy, to {one.target}" if one.target else "it is no file"
        yield f"{one.path} was left out: {what}."
    if len(left) > _TOLD_MAX:
        yield f"{len(left) - _TOLD_MAX} more were left out."


async def forward(fleet: DevServerApi, out: Output, name: str, ports: tuple[str, ...], address: str) -> None:
    """Until Ctrl-C."""
    server = await fleet.server(name)
    named = {one.name: one.port for one in server.spec.ports}
    pairs = [_pair(text, named) for text in ports]

    def tell(target: PodPort, why: str) -> None:
        out.warn(f"A connection to {name}:{target.port} broke: {why}")

    async with AsyncExitStack() as stack:
        for local, remote in pairs:
            got = await stack.enter_async_context(port_forward(fleet, name, remote, (address, local), tell))
            out.text(f"{address}:{got} → {name}:{remote}\n")
        await anyio.sleep_forever()


def request_of(which: LogOptions) -> PodLogOptions:
    since = parse_timeout(which["since"]) if which["since"] else None
    return PodLogOptions("", which["follow"], which["previous"], which["tail"], since)


async def logs(fleet: DevServerApi, name: str, request: PodLogOptions) -> None:
    sys.stdout.flush()
    target = sys.stdout.fileno()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async for piece in pod_logs(fleet, name, request):
        # On a terminal a log must not do more than be read.
        harmless = printable(decoder.decode(piece)).encode() if os.isatty(target) else piece
        await write_all(target, harmless)


def _split(text: str) -> tuple[str, str]:
    name, colon, path = text.partition(":")
    return (name, path) if colon and name and "/" not in name and name != "." else ("", text)


def _pair(text: str, named: dict[str, int]) -> tuple[int, int]:
    first, colon, second = text.partition(":")
    remote = _port(second if colon else first, named)
    return (_port(first, {}, least=0) if colon else remote), remote


def _port(text: str, named: dict[str, int], least: int = 1) -> int:
    if text in named:
        return named[text]
    if text.isdecimal() and least <= int(text) <= _PORT_MAX:
        return int(text)
    raise Invalid(
        "devservers.port",
        f'"{text}" is no port.',
        hint=did_you_mean(text, named) or "Write [LOCAL:]PORT, such as 8888 or 9000:8888.",
    )


def ssh_command(out: Output, name: str, shell: str, where: ClusterSelector, *, rank: int | None) -> int:
    return run_with_api(out, where, lambda fleet: open_shell(fleet.at_rank(rank), out, name, shell))


def port_forward_command(
    out: Output, name: str, ports: tuple[str, ...], where: ClusterSelector, *, address: str, rank: int | None
) -> None:
    run_with_api(out, where, lambda fleet: forward(fleet.at_rank(rank), out, name, ports, address))
