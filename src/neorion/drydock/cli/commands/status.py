"""`neorion drydock status`, `logs` and `url`."""

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


@click.command("url", cls=Command, run=".status_impl:url_command", extras=("drydock", "kube"))
@click.argument("part", metavar="ADDON")
@name_option
def url_command() -> None:
    """Print the address of an add-on.

    ADDON is prometheus or traefik.
    """
