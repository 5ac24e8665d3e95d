"""`devctl create`, `start`, `stop`, `extend`, `update`, `delete`."""

from functools import partial
from pathlib import Path

import click

from neorion.devservers.cli.options import (
    flavor_argument,
    flavor_option,
    name_argument,
    some_names_argument,
    timeout_option,
    wait_option,
    where_options,
)
from neorion.keel.cli import Command, dry_run_option, yes_option

_RANKS_MAX = 4096
# These belong to one command and not to all that follow.
_option_without_env = partial(click.option, allow_from_autoenv=False)


@click.command("create", cls=Command, run=".server_impl:create_command", starting="Asking for {name} ...")
@name_argument
@flavor_argument
@flavor_option(default="", show_default=False, help="The kind of machine; the cluster's default if none.")
@click.option(
    "--image",
    default="",
    show_default=False,
    metavar="IMAGE",
    help="Container image; else the flavor's own.",
)
@click.option(
    "--home-size", default="", show_default=False, metavar="SIZE", help="Size of its home, as in 100Gi."
)
@click.option(
    "--time",
    default="",
    show_default=False,
    metavar="TIME",
    help="Stop it after so long, as in 30m, 2h30m or 1d.",
)
@click.option(
    "--shared-volume",
    default="",
    show_default=False,
    metavar="CLAIM",
    help="A volume claim to mount at /shared.",
)
@_option_without_env(
    "--ssh-key",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A public key (.pub) that may log in by SSH; may be given more than once.",
)
@_option_without_env("--distributed", is_flag=True, help="Make several machines that train together.")
@_option_without_env(
    "--replicas",
    type=click.IntRange(1, _RANKS_MAX),
    metavar="N",
    help="Number of machines, with --distributed (default: 1).",
)
@_option_without_env(
    "--nproc-per-node",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes on each machine, with --distributed (default: its GPUs, or 1).",
)
@_option_without_env(
    "--min-replicas",
    type=click.IntRange(1, _RANKS_MAX),
    metavar="N",
    help="Number of machines with which elastic training continues, with --distributed.",
)
@_option_without_env(
    "--backend",
    default="",
    show_default=False,
    metavar="BACKEND",
    help="Backend of PyTorch: nccl, gloo or mpi, with --distributed (default: nccl with GPUs, else gloo).",
)
@_option_without_env(
    "--shared-home", is_flag=True, help="One home for all ranks, with --distributed, where storage allows it."
)
@_option_without_env("--wait", is_flag=True, help="Show its progress until it can be used.")
@timeout_option
@dry_run_option
@where_options
def create_command() -> None:
    """Make a server.

    Its home outlives it: a server of the same name gets the same home again. Ctrl-C while waiting leaves the server
    to go on by itself.
    """


@click.command("start", cls=Command, run=".server_impl:start_command", starting="Starting {name} ...")
@name_argument
@_option_without_env(
    "--time",
    default="",
    show_default=False,
    metavar="TIME",
    help="Let it run so long from each start on, as in 2h, whatever end it had.",
)
@wait_option
@timeout_option
@where_options
def start_command() -> None:
    """Start a server that was stopped."""


@click.command("stop", cls=Command, run=".server_impl:stop_command")
@name_argument
@wait_option
@timeout_option
@yes_option
@dry_run_option
@where_options
def stop_command() -> None:
    """Stop a server; its home is kept.

    What runs in it ends.
    """


@click.command("extend", cls=Command, run=".server_impl:extend_command")
@name_argument
@_option_without_env("--time", required=True, metavar="TIME", help="How much longer, as in 30m, 2h30m or 1d.")
@_option_without_env("--shorten", is_flag=True, help="Count from now, even if it then ends sooner.")
@dry_run_option
@where_options
def extend_command() -> None:
    """Give a server more time.

    Counts from the end it has, so that it never ends sooner.
    """


@click.command("update", cls=Command, run=".server_impl:update_command")
@name_argument
@flavor_option(required=True, allow_from_autoenv=False, help="The kind of machine it shall have.")
@wait_option
@timeout_option
@yes_option
@dry_run_option
@where_options
def update_command() -> None:
    """Change the flavor of a server; its volumes stay.

    CPU and memory change under the running server where the cluster can do that. Where it cannot, the server restarts,
    which is said and asked first. A change for which there is no room is taken back after ten minutes.
    """


@click.command("delete", cls=Command, run=".server_impl:delete_command")
@some_names_argument(metavar="NAME...", required=True)
@wait_option
@timeout_option
@yes_option
@dry_run_option
@where_options
def delete_command() -> None:
    """Delete servers; their homes are kept for a while.

    A server of the same name takes the home over while it is kept.
    """
