"""`iris cluster`: the status, a local cluster, and a controller in Kubernetes."""

from collections.abc import Callable
from pathlib import Path

import click

from neorion.iris.cli.options import controller_option
from neorion.keel.cli import App

cluster = App("cluster", help="Show, start and stop a cluster.")

_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder of the cluster (default: a folder of the user).",
)


@cluster.command("status", run=".cluster_impl:status_command")
@controller_option
def status_command() -> None:
    """Show the numbers of jobs, tasks, workers and slices."""


@cluster.command("start", run=".local_cluster_impl:start_command", extras=("server",))
@click.option(
    "--local", "here", is_flag=True, allow_from_autoenv=False, help="Start the cluster on this machine."
)
@click.option(
    "--port",
    default=10000,
    type=click.IntRange(0, 65_535),
    help="Port to listen on; 0 selects a free one.",
)
# The same limit as in the client: each worker is several processes.
@click.option("--workers", default=2, type=click.IntRange(1, 256), help="Number of workers.")
@_folder
@click.option(
    "--auth/--no-auth",
    default=True,
    allow_from_autoenv=False,
    help="Require tokens. Without them, all users of this machine have full access.",
)
@click.option(
    "--detach",
    is_flag=True,
    allow_from_autoenv=False,
    help="Return when the cluster is ready, and keep it running.",
)
def start_command() -> None:
    """Start a cluster on this machine."""


@cluster.command("stop", run=".local_cluster_impl:stop_command", extras=("server",))
@_folder
def stop_command() -> None:
    """Stop the cluster on this machine. Its data stays in its folder."""


_in_cluster = [
    click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        required=True,
        metavar="FILE",
        help="Cluster file.",
    ),
    click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="Kubeconfig file."),
    click.option("--context", default="", show_default=False, help="Context in the kubeconfig."),
]


def _on_kubernetes(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that select an installation."""
    for option in reversed(_in_cluster):
        function = option(function)
    return function


@cluster.command("up", run=".in_cluster_impl:up_command", extras=("server",))
@_on_kubernetes
@click.option(
    "--dry-run", is_flag=True, allow_from_autoenv=False, help="Print the objects and change nothing."
)
@click.option(
    "--wait/--no-wait", default=True, allow_from_autoenv=False, help="Wait until the controller is ready."
)
def up_command() -> None:
    """Install or update a controller in a Kubernetes cluster."""


@cluster.command("down", run=".in_cluster_impl:down_command", extras=("server",))
@_on_kubernetes
@click.option("--purge", is_flag=True, allow_from_autoenv=False, help="Also delete its volume and namespace.")
@click.option("-y", "--yes", is_flag=True, allow_from_autoenv=False, help="Do not ask for confirmation.")
def down_command() -> None:
    """Remove a controller and all of its slices from a Kubernetes cluster."""


@cluster.command("tunnel", run=".in_cluster_impl:tunnel_command", extras=("server",))
@_on_kubernetes
@click.option("--port", default=10000, type=click.IntRange(0, 65_535), help="Local port to listen on.")
def tunnel_command() -> None:
    """Forward a local port to the controller, and store its administrator's token for local clients."""


@cluster.command("logs", run=".in_cluster_impl:logs_command", extras=("server",))
@_on_kubernetes
@click.option("-f", "--follow", is_flag=True, allow_from_autoenv=False, help="Follow the output.")
@click.option("--tail", type=click.IntRange(min=1), metavar="LINES", help="Show only the last lines.")
def logs_command() -> None:
    """Show the log of the controller."""
