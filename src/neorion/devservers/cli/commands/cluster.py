"""`devctl flavors`, `status`, `info`, `test-k8s`."""

import click

from neorion.devservers.cli.options import where_options
from neorion.keel.cli import Command


@click.command("flavors", cls=Command, run=".cluster_impl:flavors_command")
@click.option("--aws", is_flag=True, allow_from_autoenv=False, help="Only machines of AWS.")
@where_options
def flavors_command() -> None:
    """List the kinds of machines there are."""


@click.command("status", cls=Command, run=".cluster_impl:status_command")
@where_options
def status_command() -> None:
    """Show the cluster, your servers and the flavors."""


@click.command("info", cls=Command, run=".cluster_impl:info_command")
@where_options
def info_command() -> None:
    """Show what devctl can do, and where it would do it.

    Sends no request, so it also works when no cluster can be reached.
    """


@click.command("test-k8s", cls=Command, run=".cluster_impl:test_command")
@where_options
def test_command() -> None:
    """Check that the cluster answers and what you may do.

    The exit code is 1 if something that devctl needs is not allowed.
    """
