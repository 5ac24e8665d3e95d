"""`navarch agent`."""

from pathlib import Path
from typing import Final

import click

from neorion.keel.cli import Command

_STATE: Final = Path("/var/lib/navarch-agent")
_REMEDIES: Final = ("reset_gpu", "reboot")


@click.command("agent", cls=Command, run=".agent_impl:agent", extras=("server", "navarch"))
@click.option("--server", required=True, metavar="ADDRESS", help="Where the control plane answers.")
@click.option("--node-id", required=True, help="Name of this machine there, or in Kubernetes.")
@click.option("--pool", default="", help="The pool to join, for a machine that navarch did not buy.")
@click.option("--ca-file", type=click.Path(path_type=Path), help="Whom to trust; connects by TLS.")
@click.option("--state", default=_STATE, type=click.Path(path_type=Path), help="A folder that outlives it.")
@click.option("--kernel-log", default=Path("/dev/kmsg"), type=click.Path(path_type=Path), help="To be read.")
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(_REMEDIES),
    help="Remedies it may carry out; none by default.",
)
@click.option(
    "--cloud",
    type=click.Choice(["aws", "gcp"]),
    help="Listen for this cloud's notice that it takes the machine back.",
)
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Form of the log.")
def agent() -> None:
    """Watch this machine for a control plane. The token for joining is NAVARCH_AUTH_TOKEN."""
