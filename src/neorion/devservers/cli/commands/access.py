"""`devctl ssh`, `exec`, `cp`, `port-forward`, `logs`."""

from typing import TypedDict, Unpack

import click

from neorion.devservers.cli.options import ClusterSelector, name_argument, rank_option, where_options
from neorion.keel.base import Invalid
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output

# The most that the API can be asked for.
_LINES_MAX = 2**63 - 1


@click.command("ssh", cls=Command, runs_user_command=True)
@name_argument
@click.option(
    "--shell",
    default="",
    show_default=False,
    metavar="PROGRAM",
    help="Shell to run (default: bash if the image has it, else sh).",
)
@rank_option
@where_options
def ssh_command(out: Output, name: str, shell: str, where: ClusterSelector, *, rank: int | None) -> int:
    """Open a shell in a server.

    By SSH if the server lets in one of the keys in ~/.ssh, else through the cluster; the shell is the same. Its exit code
    becomes ours.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    return run_with_api(out, where, lambda fleet: access_impl.shell(fleet.at_rank(rank), out, name, shell))


class ExecCommand(Command):
    """Takes options on both sides of NAME where `--` shows where the user's command begins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_interspersed_args = _names_server_alone(self, ctx, args)
        return super().parse_args(ctx, args)


def _names_server_alone(command: Command, ctx: click.Context, args: list[str]) -> bool:
    """Return whether only options and one word stand before the dashes."""
    if "--" not in args:
        return False
    head = args[: args.index("--")]
    ctx.allow_interspersed_args = True
    try:
        given, _, _ = command.make_parser(ctx).parse_args(head)
    except click.UsageError:
        return False
    # An argument that is not given is a mark of click's own, which counts as true.
    named, words = (isinstance(given.get(one), kind) for one, kind in (("name", str), ("command", tuple)))
    return named and not (words and given["command"])


class ExecOptions(TypedDict):
    """Options of `devctl exec`."""

    tty: bool
    rank: int | None
    every: bool


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


@click.command(
    "exec", cls=ExecCommand, runs_user_command=True, context_settings={"allow_interspersed_args": False}
)
@name_argument
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("-t", "--tty", is_flag=True, allow_from_autoenv=False, help="Give it a terminal.")
@rank_option
@click.option(
    "--all",
    "every",
    is_flag=True,
    allow_from_autoenv=False,
    help="Run it on all ranks of a distributed server at once.",
)
@where_options
def exec_command(
    out: Output, name: str, command: tuple[str, ...], where: ClusterSelector, **how: Unpack[ExecOptions]
) -> int:
    """Run a command in a server.

    What it reads comes from here, what it writes appears here, and its exit code becomes ours. Options of this command
    may stand before or after NAME, and before the --.

    With --all, each line is marked with its rank, nothing is read, and the exit code is that of the lowest rank that
    failed. torchrun needs no options there: devctl exec NAME --all -- torchrun train.py
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    words = check_command(command)
    _check_one_or_all(how["rank"], every=how["every"])
    if how["every"]:
        if how["tty"]:
            raise Invalid(
                "devservers.no_terminal",
                "One terminal cannot serve all ranks.",
                hint="Leave out --tty, or name one rank: devctl exec -t NAME --rank 0 -- COMMAND.",
            )
        from neorion.devservers.cli.commands import ranks_impl  # noqa: PLC0415 -- as above

        return run_with_api(out, where, lambda fleet: ranks_impl.execute_all(fleet, name, words))
    rank, tty = how["rank"], how["tty"]
    return run_with_api(
        out, where, lambda fleet: access_impl.execute(fleet.at_rank(rank), out, name, words, tty=tty)
    )


@click.command("cp", cls=Command)
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@rank_option
@click.option(
    "--all",
    "every",
    is_flag=True,
    allow_from_autoenv=False,
    help="Copy to all ranks of a distributed server.",
)
@where_options
def cp_command(
    out: Output, source: str, target: str, where: ClusterSelector, *, rank: int | None, every: bool
) -> None:
    """Copy files to a server or from it.

    One of SOURCE and TARGET is NAME:PATH, the other a path of this machine. A path without a slash in front is in the
    home. Folders are copied whole. Of what comes from a server, links that lead out of the copy are left out and listed.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    copy = access_impl.copy_of(source, target)
    _check_one_or_all(rank, every=every)
    if every:
        from neorion.devservers.cli.commands import ranks_impl  # noqa: PLC0415 -- as above

        run_with_api(out, where, lambda fleet: ranks_impl.copy_to_all(fleet, out, copy))
    else:
        run_with_api(out, where, lambda fleet: access_impl.copy(fleet.at_rank(rank), out, copy))


@click.command("port-forward", cls=Command)
@name_argument
@click.argument("ports", metavar="[LOCAL:]PORT...", nargs=-1, required=True)
@click.option("--address", default="127.0.0.1", metavar="IP", help="Address of this machine to listen on.")
@rank_option
@where_options
def port_forward_command(
    out: Output, name: str, ports: tuple[str, ...], where: ClusterSelector, *, address: str, rank: int | None
) -> None:
    """Lead ports of this machine to a server.

    PORT is a number, or the name of a port of the server. LOCAL 0 takes any free one. The same ports lead to the
    server's next machine when it gets one. Ctrl-C ends it.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(
        out, where, lambda fleet: access_impl.forward(fleet.at_rank(rank), out, name, ports, address)
    )


class LogOptions(TypedDict):
    """Options of `devctl logs`: a part of the log of a server."""

    follow: bool
    previous: bool
    tail: int | None
    since: str | None
    rank: int | None
    every: bool


@click.command("logs", cls=Command)
@name_argument
@click.option(
    "-f", "--follow", is_flag=True, allow_from_autoenv=False, help="Follow the log until the server ends."
)
@click.option(
    "-p",
    "--previous",
    is_flag=True,
    allow_from_autoenv=False,
    help="Show the log of the last run, before the restart.",
)
@click.option("--tail", type=click.IntRange(0, _LINES_MAX), metavar="N", help="Show only the last N lines.")
@click.option("--since", metavar="TIME", help="Show only lines younger than this, e.g. 10m.")
@rank_option
@click.option(
    "--all",
    "every",
    is_flag=True,
    allow_from_autoenv=False,
    help="Show the logs of all ranks of a distributed server, each line marked with its rank.",
)
@where_options
def logs_command(out: Output, name: str, where: ClusterSelector, **which: Unpack[LogOptions]) -> None:
    """Show the log of a server."""
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    request = access_impl.request_of(which)
    rank = which["rank"]
    _check_one_or_all(rank, every=which["every"])
    if which["every"]:
        from neorion.devservers.cli.commands import ranks_impl  # noqa: PLC0415 -- as above

        run_with_api(out, where, lambda fleet: ranks_impl.logs_of_all(fleet, name, request))
    else:
        run_with_api(out, where, lambda fleet: access_impl.logs(fleet.at_rank(rank), name, request))
