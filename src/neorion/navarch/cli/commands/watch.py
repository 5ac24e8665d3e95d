"""`navarch watch`: what happens in the fleet, as it happens."""

import click

from neorion.keel.cli import Command
from neorion.navarch.cli.options import server_option


@click.command("watch", cls=Command, run=".watch_impl:watch")
@click.option("--pool", default="", metavar="NAME", help="Only this pool.")
@click.option("--for", "span", default="", metavar="DURATION", help="Stop after this long, as in 10m.")
@server_option
def watch() -> None:
    """Tell what happens in the fleet, until interrupted."""
