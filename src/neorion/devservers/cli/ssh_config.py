"""`devctl ssh-config`."""

import click

from neorion.devservers.cli.options import where_options
from neorion.keel.cli import Command


@click.command("ssh-config", cls=Command, run=".ssh_config_impl:ssh_config_command")
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Where the bastion answers.")
@click.option(
    "--port", default=22, type=click.IntRange(1, 65535), metavar="PORT", help="Port of the bastion."
)
@click.option(
    "--known-hosts",
    default="~/.ssh/devservers_known_hosts",
    metavar="FILE",
    help="The file that the configuration reads host keys from.",
)
@click.option(
    "--print-known-hosts",
    is_flag=True,
    allow_from_autoenv=False,
    help="Print the lines for that file instead of the configuration.",
)
@where_options
def ssh_config_command() -> None:
    """Print SSH configuration for the bastion and your servers.

    Each server becomes the host SERVER.dev-USER, reached through the host devservers-bastion. Host keys come from the
    cluster, so that ssh does not ask whether to trust them.
    """
