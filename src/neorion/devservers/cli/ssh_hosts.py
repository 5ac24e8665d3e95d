"""The command `devctl ssh-config`."""

from dataclasses import dataclass
from typing import Final

from neorion.devservers.client import DevServerApi
from neorion.devservers.model.tenancy import BASTION_ACCOUNT, SYSTEM_NAMESPACE, user_of
from neorion.keel.base import Conflict, Denied, NotFound
from neorion.keel.cli.kit import Output
from neorion.keel.kube.core import CONFIG_MAP

_BASTION: Final = "devservers-bastion"
_HOST_KEY: Final = "host_key.pub"


@dataclass(frozen=True, slots=True)
class BastionAddress:
    """Where the bastion answers."""

    host: str
    port: int


async def print_config(fleet: DevServerApi, out: Output, bastion: BastionAddress, known_hosts: str) -> None:
    user = _user(fleet)
    trust = f"  UserKnownHostsFile {known_hosts}\n  StrictHostKeyChecking yes\n"
    way = f"  HostName {bastion.host}\n  Port {bastion.port}\n  User {user}\n"
    blocks = [f"Host {_BASTION}\n{way}  HostKeyAlias {_BASTION}\n{trust}"]
    for server in await fleet.servers():
        if server.status.ssh_host_key is None:
            continue
        name = f"{server.meta.name}.{fleet.namespace}"
        blocks.append(
            f"Host {name}\n  HostName {server.meta.name}\n  User dev\n  ProxyJump {_BASTION}\n"
            f"  HostKeyAlias {name}\n{trust}"
        )
    out.text("\n".join(blocks))


async def print_known_hosts(fleet: DevServerApi, out: Output) -> None:
    key = await _bastion_key(fleet)
    lines = [f"{_BASTION} {key}\n"]
    lines += [
        f"{one.meta.name}.{fleet.namespace} {one.status.ssh_host_key}\n"
        for one in await fleet.servers()
        if one.status.ssh_host_key is not None
    ]
    out.text("".join(lines))


async def _bastion_key(fleet: DevServerApi) -> str:
    try:
        found = await fleet.client.get(CONFIG_MAP, BASTION_ACCOUNT, SYSTEM_NAMESPACE)
    except (NotFound, Denied):
        raise NotFound(
            "devservers.no_bastion",
            "This cluster has no SSH bastion yet.",
            hint="Ask an administrator to run: devctl install.",
        ) from None
    return found.data.get(_HOST_KEY, "").strip()


def _user(fleet: DevServerApi) -> str:
    user = user_of(fleet.namespace)
    if not user:
        raise Conflict(
            "devservers.not_a_users_namespace",
            f"The namespace {fleet.namespace} is not that of a user.",
            hint="Name yours: devctl ssh-config --namespace dev-USER.",
        )
    return user
