"""`iris why`: the reason for a job's state, with a hint."""

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import Command


@click.command("why", cls=Command, run=".why_impl:why_command")
@click.argument("name", metavar="JOB")
@controller_option
def why_command() -> None:
    """Explain why a job waits, or how it ended."""
