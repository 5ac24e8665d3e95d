"""`devctl quota`."""

import click

from neorion.devservers.cli.options import cluster_options
from neorion.keel.cli import Command


@click.command("quota", cls=Command, run=".quota_impl:quota_command")
@click.argument("team", default="", metavar="[TEAM]")
@cluster_options
def quota_command() -> None:
    """Show what each team uses of its quota, and what that costs.

    TEAM is a ClusterQueue of Kueue: with it, each server and job that holds its quota. Dev servers, jobs of iris and all
    else in the queues are counted together. Needs the right to list ClusterQueues and Workloads.
    """
