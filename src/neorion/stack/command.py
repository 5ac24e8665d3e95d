"""`neorion demo`."""

import click

from neorion.keel.cli import Command


@click.command("demo", cls=Command, run=".demo:run_demo", extras=("server",))
def demo() -> None:
    """Show a whole life on this machine: scale up, lose a machine, heal, return every result."""
