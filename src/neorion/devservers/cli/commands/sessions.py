"""`devctl admin sessions`."""

from functools import partial

import click

from neorion.devservers.cli.options import cluster_options
from neorion.keel.cli import App, dry_run_option, yes_option

_once = partial(click.option, allow_from_autoenv=False)

sessions = App("sessions", help="Sessions at the SSH bastion: list, watch, kill and replay them.")
_user_option = _once(
    "--user", "of_user", default="", show_default=False, metavar="USER", help="Only this user's."
)


@sessions.command("list", run=".sessions_impl:list_command")
@_user_option
@cluster_options
def list_command() -> None:
    """List open sessions of all replicas."""


@sessions.command("watch", run=".sessions_impl:watch_command")
@_user_option
@cluster_options
def watch_command() -> None:
    """Show sessions as they open and close, until interrupted."""


@sessions.command("kill", run=".sessions_impl:kill_command")
@click.argument("names", nargs=-1, metavar="[SESSION]...")
@_user_option
@yes_option
@dry_run_option
@cluster_options
def kill_command() -> None:
    """Close sessions.

    Name them, or give --user for all of a user. The user may log in again: suspend them to prevent that.
    """


@sessions.command("replay", run=".sessions_impl:replay_command")
@click.argument("recording", metavar="SESSION|FILE")
@_once("--speed", default=1.0, type=click.FloatRange(min=0.1, max=1000), metavar="N", help="Times as fast.")
@_once(
    "--max-pause",
    default=2.0,
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="The longest pause without output.",
)
@cluster_options
def replay_command() -> None:
    """Play the recording of a terminal session.

    FILE is a .cast file. SESSION is looked up on the bastion's replicas: a session as in the audit log, or a connection for
    all its terminals. Where the output is not a terminal it is written without pauses.
    """
