"""`neorion drydock kubeconfig` and `kubectl`."""

import click

from neorion.drydock.cli.options import name_option
from neorion.keel.cli import Command


@click.command("kubeconfig", cls=Command, run=".kubectl_impl:kubeconfig_command", extras=("drydock", "kube"))
@name_option
def kubeconfig_command() -> None:
    """Print where a cluster's kubeconfig is."""


@click.command(
    "kubectl",
    cls=Command,
    runs_user_command=True,
    context_settings={"allow_interspersed_args": False},
    run=".kubectl_impl:kubectl_command",
    extras=("drydock", "kube"),
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@name_option
def kubectl_command() -> None:
    """Run kubectl as the administrator of a cluster.

    Options of this command come first, those of kubectl after its verb or after --:
    neorion drydock kubectl --name mine get pods -A.
    """
