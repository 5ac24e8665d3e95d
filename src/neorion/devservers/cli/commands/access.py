"""`devctl ssh`, `exec`, `cp`, `port-forward`, `logs`."""

from typing import TypedDict, Unpack

import click

from neorion.devservers.cli.options import ClusterSelector, name_argument, where_options
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
    help="Which shell; bash where there is one, else sh.",
)
@where_options
def ssh_command(out: Output, name: str, shell: str, where: ClusterSelector) -> int:
    """Open a shell in a server.

    By SSH if the server lets in one of the keys in ~/.ssh, else through the cluster; the shell is the same. Its exit code
    becomes ours.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    return run_with_api(out, where, lambda fleet: access_impl.shell(fleet, out, name, shell))


@click.command(
    "exec", cls=Command, runs_user_command=True, context_settings={"allow_interspersed_args": False}
)
@name_argument
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("-t", "--tty", is_flag=True, allow_from_autoenv=False, help="Give it a terminal.")
@where_options
def exec_command(
    out: Output, name: str, command: tuple[str, ...], where: ClusterSelector, *, tty: bool
) -> int:
    """Run a command in a server.

    What it reads comes from here, what it writes appears here, and its exit code becomes ours. Options of this command
    stand before NAME.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    # click leaves the dashes where options may not follow arguments.
    words = command[1:] if command[0] == "--" else command
    if words is command and command[0].startswith("-"):
        raise Invalid(
            "devservers.option_place",
            f'"{command[0]}" stands behind the name of the server, where its command begins.',
            hint="Options come first: devctl exec [OPTIONS] NAME -- COMMAND",
        )
    return run_with_api(out, where, lambda fleet: access_impl.execute(fleet, out, name, words, tty=tty))


@click.command("cp", cls=Command)
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@where_options
def cp_command(out: Output, source: str, target: str, where: ClusterSelector) -> None:
    """Copy files to a server or from it.

    One of SOURCE and TARGET is NAME:PATH, the other a path of this machine. A path without a slash in front is in the
    home. Folders are copied whole; of what comes from a server, links that lead out of the copy are left out and told.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    copy = access_impl.copy_of(source, target)
    run_with_api(out, where, lambda fleet: access_impl.copy(fleet, out, copy))


@click.command("port-forward", cls=Command)
@name_argument
@click.argument("ports", metavar="[LOCAL:]PORT...", nargs=-1, required=True)
@click.option("--address", default="127.0.0.1", metavar="IP", help="Where to listen on this machine.")
@where_options
def port_forward_command(
    out: Output, name: str, ports: tuple[str, ...], address: str, where: ClusterSelector
) -> None:
    """Lead ports of this machine to a server.

    PORT is a number, or the name of a port of the server. LOCAL 0 takes any free one. The same ports lead to the
    server's next machine when it gets one. Ctrl-C ends it.
    """
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: access_impl.forward(fleet, out, name, ports, address))


class LogOptions(TypedDict):
    """Which part of a server's log is meant."""

    follow: bool
    previous: bool
    tail: int | None
    since: str | None


@click.command("logs", cls=Command)
@name_argument
@click.option("-f", "--follow", is_flag=True, allow_from_autoenv=False, help="Go on until it ends.")
@click.option(
    "-p", "--previous", is_flag=True, allow_from_autoenv=False, help="Of its last run, before it restarted."
)
@click.option("--tail", type=click.IntRange(0, _LINES_MAX), metavar="N", help="Only the last lines.")
@click.option("--since", metavar="TIME", help="Only what is younger, as in 10m.")
@where_options
def logs_command(out: Output, name: str, where: ClusterSelector, **which: Unpack[LogOptions]) -> None:
    """Show what a server writes."""
    from neorion.devservers.cli.commands import access_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    request = access_impl.request_of(which)
    run_with_api(out, where, lambda fleet: access_impl.logs(fleet, name, request))
