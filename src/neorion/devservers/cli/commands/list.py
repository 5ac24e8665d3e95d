"""`devctl list`. Apart from the other commands that look: it is what people type most, and wait for."""

import click

from neorion.devservers.cli.options import where_options
from neorion.keel.cli import Command


@click.command("list", cls=Command, run=".list_impl:list_command")
@click.option("-w", "--watch", is_flag=True, allow_from_autoenv=False, help="Show changes as they come.")
@where_options
def list_command() -> None:
    """List your servers."""
