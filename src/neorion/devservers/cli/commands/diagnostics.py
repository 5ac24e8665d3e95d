"""`devctl describe`, `doctor`, `events`, `cost`, `monitor`."""

import click

from neorion.devservers.cli.options import (
    maybe_name_argument,
    name_argument,
    some_names_argument,
    where_options,
)
from neorion.keel.cli import Command


@click.command("describe", cls=Command, run=".diagnostics_impl:describe_command")
@name_argument
@where_options
def describe_command() -> None:
    """Show all there is to know of a server.

    What would stop it and when, what it costs, and what is in its way.
    """


@click.command("doctor", cls=Command, run=".diagnostics_impl:doctor_command")
@some_names_argument(metavar="[NAME]...")
@click.option("--aws", is_flag=True, allow_from_autoenv=False, help="Check the installation on AWS instead.")
@where_options
def doctor_command() -> None:
    """Say why a server does not run, and what would help.

    Without a name, of all your servers. With --aws, check the installation: volumes, machines, GPUs, the bastion,
    metrics. The exit code is 1 if something does not work.
    """


@click.command("events", cls=Command, run=".diagnostics_impl:events_command")
@name_argument
@where_options
def events_command() -> None:
    """Show what happened to a server."""


@click.command("cost", cls=Command, run=".cost_impl:cost_command")
@maybe_name_argument
@click.option(
    "--by-user",
    is_flag=True,
    allow_from_autoenv=False,
    help="One line for each user, for who may see all servers of the cluster.",
)
@where_options
def cost_command() -> None:
    """Show what servers have cost.

    Without a name, all your servers and their sum.
    """


@click.command("monitor", cls=Command, run=".monitor_impl:monitor_command")
@some_names_argument(metavar="[NAME]...")
@click.option("--every", default="5s", metavar="TIME", help="Time between two looks.")
@click.option("--once", is_flag=True, allow_from_autoenv=False, help="Look once, and end.")
@where_options
def monitor_command() -> None:
    """Watch servers and what they use.

    CPU and memory as the cluster measures them, GPUs as nvidia-smi in the server tells. Ctrl-C ends it.
    """
