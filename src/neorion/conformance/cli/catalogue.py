"""`neorion conformance list` and `explain`."""

import click

from neorion.conformance.cli.options import version_option
from neorion.keel.cli import Command


@click.command("list", cls=Command, run=".catalogue_impl:list_command")
@version_option
def list_command() -> None:
    """List the requirements of a version."""


@click.command("explain", cls=Command, run=".catalogue_impl:explain_command")
@click.argument("requirement")
def explain_command() -> None:
    """Explain a requirement: what it asks, how it is checked, what only hardware can show."""
