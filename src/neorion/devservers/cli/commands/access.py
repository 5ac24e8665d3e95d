"""`devctl ssh`, `exec`, `cp`, `port-forward`, `logs`."""

import click

from neorion.devservers.cli.options import name_argument, rank_option, where_options
from neorion.keel.cli import Command

# The most that the API can be asked for.
_LINES_MAX = 2**63 - 1


@click.command("ssh", cls=Command, runs_user_command=True, run=".access_impl:ssh_command")
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
def ssh_command() -> None:
    """Open a shell in a server.

    By SSH if the server lets in one of the keys in ~/.ssh, else through the cluster; the shell is the same. Its exit code
    becomes ours.
    """


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


@click.command(
    "exec",
    cls=ExecCommand,
    runs_user_command=True,
    context_settings={"allow_interspersed_args": False},
    run=".ranks_impl:exec_command",
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
def exec_command() -> None:
    """Run a command in a server.

    What it reads comes from here, what it writes appears here, and its exit code becomes ours. Options of this command
    may stand before or after NAME, and before the --.

    With --all, each line is marked with its rank, nothing is read, and the exit code is that of the lowest rank that
    failed. torchrun needs no options there: devctl exec NAME --all -- torchrun train.py
    """


@click.command("cp", cls=Command, run=".ranks_impl:cp_command")
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
def cp_command() -> None:
    """Copy files to a server or from it.

    One of SOURCE and TARGET is NAME:PATH, the other a path of this machine. A path without a slash in front is in the
    home. Folders are copied whole. Of what comes from a server, links that lead out of the copy are left out and listed.
    """


@click.command("port-forward", cls=Command, run=".access_impl:port_forward_command")
@name_argument
@click.argument("ports", metavar="[LOCAL:]PORT...", nargs=-1, required=True)
@click.option("--address", default="127.0.0.1", metavar="IP", help="Address of this machine to listen on.")
@rank_option
@where_options
def port_forward_command() -> None:
    """Lead ports of this machine to a server.

    PORT is a number, or the name of a port of the server. LOCAL 0 takes any free one. The same ports lead to the
    server's next machine when it gets one. Ctrl-C ends it.
    """


@click.command("logs", cls=Command, run=".ranks_impl:logs_command")
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
def logs_command() -> None:
    """Show the log of a server."""
