"""`iris slice`: machines that are created and deleted together."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App

slices = App("slice", help="List slices of machines.")


@slices.command("list", run=".slice_impl:list_command")
@click.option("--group", metavar="NAME", help="Show only slices of this scale group.")
@controller_option
def list_command() -> None:
    """List slices."""
