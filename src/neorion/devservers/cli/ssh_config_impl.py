"""The work of `devctl ssh-config`."""

from neorion.devservers.cli import ssh_hosts
from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.keel.cli.kit import Output


def ssh_config_command(
    out: Output, where: ClusterSelector, *, host: str, port: int, known_hosts: str, print_known_hosts: bool
) -> None:
    if print_known_hosts:
        run_with_api(out, where, lambda fleet: ssh_hosts.print_known_hosts(fleet, out))
    else:
        bastion = ssh_hosts.BastionAddress(host, port)
        run_with_api(out, where, lambda fleet: ssh_hosts.print_config(fleet, out, bastion, known_hosts))
