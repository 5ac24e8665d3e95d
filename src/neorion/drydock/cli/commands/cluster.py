"""`neorion drydock up`, `down` and `build`."""

import click

from neorion.drydock.cli.options import binaries_option, name_option
from neorion.keel.cli import Command, dry_run_option


@click.command("up", cls=Command, run=".cluster_impl:up_command", extras=("drydock", "kube"))
@name_option
@click.option(
    "--simulated",
    multiple=True,
    metavar="N[:TYPE]",
    help='Nodes that only the API server knows, as in "100:h100x8"; may be given more than once.',
)
@click.option(
    "--nodes",
    type=click.IntRange(0, 20),
    default=0,
    help="Real nodes, which run real pods; needs root and containerd.",
)
@click.option(
    "--with",
    "extras",
    metavar="PART,...",
    default="",
    help=(
        "Add-ons to run: kueue, coreweave, coscheduling, custom-metrics, device-metrics, gvisor, "
        "jobset, karpenter, pod-groups, prometheus, traefik."
    ),
)
@binaries_option
def up_command() -> None:
    """Make a cluster, or bring back what of it does not run."""


@click.command("down", cls=Command, run=".cluster_impl:down_command", extras=("drydock", "kube"))
@name_option
@click.option("--all", "every", is_flag=True, allow_from_autoenv=False, help="All clusters of this user.")
@dry_run_option
def down_command() -> None:
    """Remove a cluster without a trace."""


@click.command("build", cls=Command, run=".build_impl:build_command")
@click.argument("products", nargs=-1)
@click.option(
    "--released",
    is_flag=True,
    allow_from_autoenv=False,
    help="Fetch what its makers have released instead of building it; needs no Go.",
)
def build_command() -> None:
    """Build the programs that clusters are made of.

    PRODUCTS are etcd, kubernetes, kwok, coredns, prometheus and kueue; all of them if none is named. The first time takes minutes,
    what is there already takes none. prometheus and kueue are always built: no fitting programs of theirs are released.
    """
