"""`devctl submit`."""

from pathlib import Path

import click

from neorion.devservers.cli.options import flavor_option, timeout_option, where_options
from neorion.keel.cli import Command, dry_run_option


@click.command(
    "submit",
    cls=Command,
    runs_user_command=True,
    context_settings={"allow_interspersed_args": True},
    run=".submit_impl:submit_command",
)
@click.argument("script", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="SCRIPT")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENT...]")
@click.option(
    "--name",
    default="",
    show_default=False,
    allow_from_autoenv=False,
    metavar="NAME",
    help="Name of the run (default: made from that of SCRIPT).",
)
@flavor_option(default="", show_default=False, help="Kind of machine (default: the default of the cluster).")
@click.option("--image", default="", show_default=False, metavar="IMAGE", help="Image to run SCRIPT in.")
@click.option(
    "--home-size", default="", show_default=False, metavar="SIZE", help="Size of a home, e.g. 10Gi."
)
@click.option("--time", default="1d", metavar="TIME", help="Longest time of the run, e.g. 12h.")
@click.option(
    "--shared-volume",
    default="",
    show_default=False,
    metavar="CLAIM",
    help="Volume claim to mount at /shared.",
)
@click.option("--replicas", default=1, type=click.IntRange(1, 4096), metavar="N", help="Number of machines.")
@click.option(
    "--nproc-per-node",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes on each machine (default: its GPUs, or 1).",
)
@click.option(
    "--backend",
    default="",
    show_default=False,
    metavar="BACKEND",
    help="Backend of PyTorch: nccl, gloo or mpi.",
)
@click.option(
    "--log",
    type=click.Path(path_type=Path, dir_okay=False),
    allow_from_autoenv=False,
    metavar="FILE",
    help="File for a copy of the output (default: NAME.log).",
)
@click.option("--keep", is_flag=True, allow_from_autoenv=False, help="Keep the server after the run.")
@timeout_option
@dry_run_option
@where_options
def submit_command() -> None:
    """Run a script on new machines and give them back.

    A .py file runs under torchrun on all machines, a .sh file under sh. The output appears here, each line marked with its
    rank, and in the log file. The exit code is that of the lowest rank that failed. The machines are given back when the
    script ends, also after Ctrl-C.
    """
