"""`neorion drydock node`."""

import click

from neorion.drydock.cli.options import name_option
from neorion.keel.cli import App

node = App("node", help="Add and remove nodes.")


@node.command("add", run=".node_impl:add_command", extras=("drydock", "kube"))
@click.argument("node_name", required=False, metavar="[NODE]")
@name_option
@click.option("--simulated", metavar="N[:TYPE]", help='Nodes that only the API server knows: "10:h100x8".')
@click.option("--gpus", default=0, help="Fake GPUs of a real node.")
@click.option(
    "--size",
    default="",
    metavar="CPUS:MEMORY",
    help='Resources of a real node, as in "1:4Gi"; else what the machine has.',
)
def add_command() -> None:
    """Add a real node, or simulated ones."""


@node.command("remove", run=".node_impl:remove_command", extras=("drydock", "kube"))
@click.argument("node_name", metavar="NODE")
@name_option
def remove_command() -> None:
    """Remove a node, real or simulated."""
