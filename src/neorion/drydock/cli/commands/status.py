"""`neorion drydock status` and `logs`."""

import click

from neorion.drydock.cli.options import name_option
from neorion.keel.cli import Command


@click.command("status", cls=Command, run=".status_impl:status_command", extras=("drydock", "kube"))
@click.option("--name", help="Only this cluster.")
def status_command() -> None:
    """Show the clusters of this machine."""


@click.command("logs", cls=Command, run=".status_impl:logs_command", extras=("drydock", "kube"))
@click.argument("part")
@name_option
def logs_command() -> None:
    """Print the log of a part of a cluster.

    PART is one that `status -o json` names, as in etcd; of a real node its programs, as in node1/kubelet.
    """
