"""`devctl queue`."""

import click

from neorion.devservers.cli.options import ClusterSelector, where_options
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("queue", cls=Command)
@click.option(
    "-A",
    "--all-namespaces",
    "everywhere",
    is_flag=True,
    allow_from_autoenv=False,
    help="Show the servers of all users, which needs the right to list them.",
)
@where_options
def queue_command(out: Output, where: ClusterSelector, *, everywhere: bool) -> None:
    """List the servers that wait for quota.

    PLACE counts all that wait for the same quota, in every namespace.
    """
    from neorion.devservers.cli.commands import queue_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: queue_impl.queue(fleet, out, everywhere=everywhere))
