"""`devctl admin sessions`."""

from functools import partial

import click

from neorion.devservers.cli.options import ClusterSelector, cluster_options
from neorion.keel.cli import App, dry_run_option, yes_option
from neorion.keel.cli.kit import Output

_once = partial(click.option, allow_from_autoenv=False)

sessions = App("sessions", help="Sessions at the SSH bastion: list, watch, kill and replay them.")
_user_option = _once(
    "--user", "of_user", default="", show_default=False, metavar="USER", help="Only this user's."
)


@sessions.command("list")
@_user_option
@cluster_options
def list_command(out: Output, where: ClusterSelector, *, of_user: str) -> None:
    """List open sessions of all replicas."""
    from neorion.devservers.cli.commands import sessions_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: sessions_impl.show_all(fleet.client, out, of_user))


@sessions.command("watch")
@_user_option
@cluster_options
def watch_command(out: Output, where: ClusterSelector, *, of_user: str) -> None:
    """Show sessions as they open and close, until interrupted."""
    from neorion.devservers.cli.commands import sessions_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: sessions_impl.watch(fleet.client, out, of_user))


@sessions.command("kill")
@click.argument("names", nargs=-1, metavar="[SESSION]...")
@_user_option
@yes_option
@dry_run_option
@cluster_options
def kill_command(
    out: Output, names: tuple[str, ...], where: ClusterSelector, *, of_user: str, yes: bool, dry_run: bool
) -> None:
    """Close sessions.

    Name them, or give --user for all of a user. The user may log in again: suspend them to prevent that.
    """
    from neorion.devservers.cli.commands import sessions_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    request = sessions_impl.KillRequest(names, of_user, yes, dry_run)
    run_with_api(out, where, lambda fleet: sessions_impl.kill(fleet.client, out, request))


@sessions.command("replay")
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
def replay_command(
    out: Output, recording: str, where: ClusterSelector, *, speed: float, max_pause: float
) -> None:
    """Play the recording of a terminal session.

    FILE is a .cast file. SESSION is looked up on the bastion's replicas: a session as in the audit log, or a connection for
    all its terminals. Where the output is not a terminal it is written without pauses.
    """
    from neorion.devservers.cli.commands import sessions_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    pace = sessions_impl.Pace(speed, max_pause)
    local = sessions_impl.recording_file(recording)
    if local is not None:
        sessions_impl.play_file(local, pace)
    else:
        run_with_api(out, where, lambda fleet: sessions_impl.replay(fleet.client, recording, pace))
