"""`devctl ssh-config`."""

import click

from neorion.devservers.cli.options import ClusterSelector, where_options
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output


@click.command("ssh-config", cls=Command)
@click.option("--host", default="127.0.0.1", metavar="HOST", help="Where the bastion answers.")
@click.option("--port", default=22, type=click.IntRange(1, 65535), metavar="PORT", help="Its port.")
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
def ssh_config_command(
    out: Output, where: ClusterSelector, *, host: str, port: int, known_hosts: str, print_known_hosts: bool
) -> None:
    """Print SSH configuration for the bastion and your servers.

    Each server becomes the host SERVER.dev-USER, reached through the host devservers-bastion. Host keys come from the
    cluster, so that ssh does not ask whether to trust them.
    """
    from neorion.devservers.cli import ssh_hosts  # noqa: PLC0415 -- the help does not need it
    from neorion.devservers.cli.session import run_with_api  # noqa: PLC0415 -- as above

    if print_known_hosts:
        run_with_api(out, where, lambda fleet: ssh_hosts.print_known_hosts(fleet, out))
    else:
        bastion = ssh_hosts.BastionAddress(host, port)
        run_with_api(out, where, lambda fleet: ssh_hosts.print_config(fleet, out, bastion, known_hosts))
