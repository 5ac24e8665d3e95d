"""`devctl open`."""

import click

from neorion.devservers.cli.options import name_argument, where_options
from neorion.keel.cli import Command


@click.command("open", cls=Command, run=".open_impl:open_command")
@name_argument
@click.option(
    "--editor",
    default="vscode",
    type=click.Choice(["vscode", "cursor", "jetbrains"]),
    help="Editor to open.",
)
@click.option("--path", default="/home/dev", metavar="PATH", help="Folder of the server to open.")
@click.option(
    "--print", "show", is_flag=True, allow_from_autoenv=False, help="Print the address and open nothing."
)
@where_options
def open_command() -> None:
    """Open a server in an editor of this machine.

    The editor connects by SSH, to the host that devctl ssh-config prints for the server.
    """
