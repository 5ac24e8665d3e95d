"""`navarch explain`, `navarch plan`, `navarch doctor`: what is so, what would be done, and what should not be."""

import click

from neorion.keel.cli import Command
from neorion.navarch.cli.options import server_option


@click.command("explain", cls=Command, run=".explain_impl:explain")
@click.argument("subject", metavar="NODE|POOL")
@server_option
def explain() -> None:
    """Say what a node or a pool does, why, and what comes next."""


@click.command("plan", cls=Command, run=".explain_impl:plan")
@click.option("--pool", default="", metavar="NAME", help="Only for this pool.")
@server_option
def plan() -> None:
    """Say what would be done now."""


@click.command("doctor", cls=Command, run=".explain_impl:doctor")
@server_option
def doctor() -> None:
    """Look for what should not be."""
