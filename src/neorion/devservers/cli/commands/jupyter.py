"""`devctl jupyter`."""

import click

from neorion.devservers.cli.options import name_argument, rank_option, where_options
from neorion.keel.cli import Command


@click.command("jupyter", cls=Command, run=".jupyter_impl:jupyter_command")
@name_argument
@click.option(
    "--port", default=8888, type=click.IntRange(1, 65535), metavar="PORT", help="Port in the server."
)
@click.option(
    "--local",
    default=0,
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Port of this machine; 0 is any free one.",
)
@click.option("--browser/--no-browser", default=True, allow_from_autoenv=False, help="Open a browser.")
@rank_option
@where_options
def jupyter_command() -> None:
    """Start JupyterLab in a server and open it here.

    The image has to bring jupyter. Notebooks go on when Ctrl-C ends this command; call it again to return to them.
    """
