"""`devctl open`."""

import click

from neorion.devservers.cli.options import ClusterSelector, name_argument, where_options
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("open", cls=Command)
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
def open_command(
    out: Output, name: str, where: ClusterSelector, *, editor: str, path: str, show: bool
) -> None:
    """Open a server in an editor of this machine.

    The editor connects by SSH, to the host that devctl ssh-config prints for the server.
    """
    from neorion.devservers.cli.commands import open_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: open_impl.open_server(fleet, out, name, (editor, path), show=show))
