"""`neorion conformance run` and `cleanup`."""

from functools import partial
from pathlib import Path

import click

from neorion.conformance.cli.options import RUNS, version_option
from neorion.keel.cli import Command

_context_option = click.option("--context", default="", show_default=False, help="Context in the kubeconfig.")
_kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The cluster; as for kubectl by default.",
)
_once = partial(click.option, allow_from_autoenv=False)


@click.command("run", cls=Command, run=".commands_impl:run_command")
@version_option
@_once("--only", default="", metavar="ID,...", help="Check these requirements alone.")
@click.option(
    "--profile", default="nvidia", metavar="NAME|FILE", help="Accelerators: nvidia, amd, example or a file."
)
@click.option(
    "--image", default="", show_default=False, metavar="IMAGE", help="Image of test pods; needs a shell."
)
@_once("--gateway-class", default="", metavar="NAME", help="GatewayClass to check, if there are several.")
@_once(
    "--gang-scheduler",
    default="",
    type=click.Choice(["", "kueue", "jobset", "coscheduling", "native"]),
    show_choices=False,
    metavar="NAME",
    help="Gang scheduler to check: kueue, jobset, coscheduling or native; by default the first that is installed.",
)
@_once("--prometheus", default="", metavar="URL", help="Address of the monitoring system.")
@_once("--hardware", is_flag=True, help="State that nodes with a real kubelet have real accelerators.")
@_once(
    "--window", default="10s", metavar="TIME", help="How long nothing may happen where nothing may happen."
)
@_once("--patience", default="60s", metavar="TIME", help="How long to wait for what has to happen.")
@click.option("--folder", type=click.Path(path_type=Path), default=RUNS, help="Where runs are kept.")
@_once(
    "--sign",
    type=click.Path(path_type=Path),
    default=None,
    metavar="KEY",
    help="Sign the run with this private key of OpenSSH.",
)
@_once("--plan", is_flag=True, help="Show what would be created and needed, and do nothing.")
@_context_option
@_kubeconfig_option
def run_command() -> None:
    """Check a cluster.

    Each check works in a namespace of its own, proves by a negative control that it can fail, and cleans up. Exits with 1
    if a MUST fails or a check could not run.
    """


@click.command("cleanup", cls=Command, run=".commands_impl:cleanup_command")
@_once("--run", default="", metavar="ID", help="Only what this run has left.")
@_context_option
@_kubeconfig_option
def cleanup_command() -> None:
    """Remove what interrupted runs have left: everything that carries their label."""
