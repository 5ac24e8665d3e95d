"""`devctl queue`."""

import click

from neorion.devservers.cli.options import where_options
from neorion.keel.cli import Command


@click.command("queue", cls=Command, run=".queue_impl:queue_command")
@click.option(
    "-A",
    "--all-namespaces",
    "everywhere",
    is_flag=True,
    allow_from_autoenv=False,
    help="Show the servers of all users, which needs the right to list them.",
)
@where_options
def queue_command() -> None:
    """List the servers that wait for quota.

    PLACE counts all that wait for the same quota, in every namespace.
    """
