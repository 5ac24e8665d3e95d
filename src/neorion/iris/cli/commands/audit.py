"""`iris audit`: the audit log."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import Command


@click.command("audit", cls=Command, run=".audit_impl:audit_command")
@click.option("--user", "who", allow_from_autoenv=False, default="", help="Show only calls of this user.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="Longest list to show.")
@controller_option
def audit_command() -> None:
    """List the audit log, newest entries first."""
