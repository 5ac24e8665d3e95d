"""`iris audit`: the audit log."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import Command


@click.command("audit", cls=Command, run=".audit_impl:audit_command")
@click.option("--user", "who", allow_from_autoenv=False, default="", help="Only what this one did.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="At most so many entries.")
@controller_option
def audit_command() -> None:
    """List who changed what, the newest first."""
