"""`neorion demo`."""

import click

from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, require_extra


@click.command("demo", cls=Command)
def demo(out: Output) -> None:
    """Show a whole life on this machine: scale up, lose a machine, heal, return every result."""
    require_extra("server")
    from neorion.stack.demo import run_demo  # noqa: PLC0415 -- the help does not need it

    run_demo(out)
