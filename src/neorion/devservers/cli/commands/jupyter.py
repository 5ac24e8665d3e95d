"""`devctl jupyter`."""

from typing import TypedDict, Unpack

import click

from neorion.devservers.cli.options import ClusterSelector, name_argument, rank_option, where_options
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


class JupyterOptions(TypedDict):
    """Options of `devctl jupyter`."""

    port: int
    local: int
    browser: bool
    rank: int | None


@click.command("jupyter", cls=Command)
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
def jupyter_command(out: Output, name: str, where: ClusterSelector, **how: Unpack[JupyterOptions]) -> None:
    """Start JupyterLab in a server and open it here.

    The image has to bring jupyter. Notebooks go on when Ctrl-C ends this command; call it again to return to them.
    """
    from neorion.devservers.cli.commands import jupyter_impl  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    run_with_api(out, where, lambda fleet: jupyter_impl.jupyter(fleet.at_rank(how["rank"]), out, name, how))
