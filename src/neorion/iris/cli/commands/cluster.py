"""`iris cluster`: what is there, a cluster of one's own on this machine, and a controller in Kubernetes."""

from collections.abc import Callable
from pathlib import Path

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App

cluster = App("cluster", help="See, start and stop a cluster.")

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where it keeps everything; a folder of the user's own if none is given.",
)


@cluster.command("status", run=".cluster_impl:status_command")
@controller_option
def status_command() -> None:
    """Show how many jobs, tasks, workers and slices there are."""


@cluster.command("start", run=".local_cluster_impl:start_command", extras=("server",))
@click.option("--local", "here", is_flag=True, allow_from_autoenv=False, help="On this machine.")
@click.option(
    "--port",
    default=10000,
    type=click.IntRange(0, 65_535),
    help="The port to listen on; 0 takes any that is free.",
)
# As many as the client takes: each is some processes of this machine.
@click.option("--workers", default=2, type=click.IntRange(1, 256), help="Number of workers.")
@_folder
@click.option(
    "--auth/--no-auth",
    default=True,
    allow_from_autoenv=False,
    help="Without, everybody on this machine may do everything there; tokens are never asked for.",
)
@click.option(
    "--detach", is_flag=True, allow_from_autoenv=False, help="Return when it answers, and leave it running."
)
def start_command() -> None:
    """Start a cluster on this machine."""


@cluster.command("stop", run=".local_cluster_impl:stop_command", extras=("server",))
@_folder
def stop_command() -> None:
    """End the cluster that was started on this machine; what it knows stays in its folder."""


_in_cluster = [
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        required=True,
        metavar="FILE",
        help="The cluster file.",
    ),
    click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="The kubeconfig."),
    click.option("--context", default="", show_default=False, help="The context in the kubeconfig."),
]


def _on_kubernetes(function: Callable[..., None]) -> Callable[..., None]:
    """Options that say which installation is meant."""
    for option in reversed(_in_cluster):
        function = option(function)
    return function


@cluster.command("up", run=".in_cluster_impl:up_command", extras=("server",))
@_on_kubernetes
@click.option("--dry-run", is_flag=True, allow_from_autoenv=False, help="Print the objects; change nothing.")
@click.option("--wait/--no-wait", default=True, allow_from_autoenv=False, help="Wait until it answers.")
def up_command() -> None:
    """Install or update a controller in a Kubernetes cluster."""


@cluster.command("down", run=".in_cluster_impl:down_command", extras=("server",))
@_on_kubernetes
@click.option("--purge", is_flag=True, allow_from_autoenv=False, help="Delete its volume and namespace too.")
@click.option("-y", "--yes", is_flag=True, allow_from_autoenv=False, help="Ask no question.")
def down_command() -> None:
    """Remove a controller from a Kubernetes cluster, with all of its slices."""


@cluster.command("tunnel", run=".in_cluster_impl:tunnel_command", extras=("server",))
@_on_kubernetes
@click.option("--port", default=10000, type=click.IntRange(0, 65_535), help="The port to listen on here.")
def tunnel_command() -> None:
    """Forward a local port to the controller, with its administrator's token for clients on this machine."""


@cluster.command("logs", run=".in_cluster_impl:logs_command", extras=("server",))
@_on_kubernetes
@click.option("-f", "--follow", is_flag=True, allow_from_autoenv=False, help="Go on as it writes.")
@click.option("--tail", type=click.IntRange(min=1), metavar="LINES", help="Only the last lines.")
def logs_command() -> None:
    """Show what the controller writes."""
