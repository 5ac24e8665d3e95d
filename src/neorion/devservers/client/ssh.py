"""SSH to a server with the user's own client and keys, through a forwarded port."""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import anyio
from msgspec import Struct

from neorion.devservers.client.api import DevServerApi
from neorion.devservers.client.pod_access import port_forward
from neorion.devservers.decide import SSH_PORT
from neorion.devservers.model.kube_types import DevServerObject

# sshd uses this name in every server, whatever user the image has.
USER = "dev"


class SshLogin(Struct, frozen=True):
    """Data for a login: the server's known host key, and a private key that it accepts."""

    name: str
    host: str
    host_key: str
    identity: Path

    def command(self, port: int, known_hosts: Path) -> list[str]:
        """The command line of this machine's `ssh`. Settings for other hosts do not apply.

        A server of the user may run code of others: neither the agent nor the display nor ports of this machine reach it,
        even if a `Host *` of the user forwards them everywhere.
        """
        options = {
            "HostKeyAlias": self.host,
            "UserKnownHostsFile": str(known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentityFile": str(self.identity),
            "IdentitiesOnly": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "ClearAllForwardings": "yes",
            "PermitLocalCommand": "no",
            "ProxyCommand": "none",
            "LogLevel": "ERROR",
        }
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", *given, "-p", str(port), f"{USER}@127.0.0.1"]


def find_ssh_login(server: DevServerObject, folder: Path) -> SshLogin | None:
    """None where the server has no SSH, or none of the keys in `folder` (a user's `~/.ssh`) fits it."""
    status, known = server.status, server.spec.ssh
    if status.ssh_endpoint is None or status.ssh_host_key is None or known is None or not shutil.which("ssh"):
        return None
    identity = matching_private_key(known.public_keys, folder)
    host = f"{server.meta.name}.{server.meta.namespace}"
    return SshLogin(server.meta.name, host, status.ssh_host_key, identity) if identity else None


def matching_private_key(let_in: Iterable[str], folder: Path) -> Path | None:
    """The private key beside a public one that is let in."""
    wanted = {_key_material(line) for line in let_in}
    for public in sorted(folder.glob("*.pub")):
        private = public.with_suffix("")
        try:
            fits = _key_material(public.read_text()) in wanted and private.is_file()
        except (OSError, UnicodeDecodeError):
            continue
        if fits:
            return private
    return None


async def run_ssh(fleet: DevServerApi, way: SshLogin) -> int:
    """The user's own `ssh` on the user's own terminal; its exit code."""
    with tempfile.TemporaryDirectory(prefix="devctl-") as folder:
        known_hosts = Path(folder) / "known_hosts"
        known_hosts.write_text(f"{way.host} {way.host_key}\n")
        async with port_forward(fleet, way.name, SSH_PORT) as port:
            command = way.command(port, known_hosts)
            async with await anyio.open_process(command, stdin=None, stdout=None, stderr=None) as process:
                return await process.wait()


def _key_material(line: str) -> tuple[str, ...]:
    """A key without its comment."""
    return tuple(line.split()[:2])
