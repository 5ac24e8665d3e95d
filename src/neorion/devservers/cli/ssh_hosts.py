"""The command `devctl ssh-config`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from neorion.devservers.client import DevServerApi
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.model.tenancy import BASTION_ACCOUNT, SYSTEM_NAMESPACE, user_of
from neorion.keel.base import Conflict, Denied, NotFound
from neorion.keel.cli.kit import Output
from neorion.keel.kube.core import CONFIG_MAP

_BASTION: Final = "devservers-bastion"
_HOST_KEY: Final = "host_key.pub"
_AUTHORITY: Final = "authority.pub"
_MARKS: Final = {"@cert-authority ": _AUTHORITY, "": _HOST_KEY}


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
    keys = await _bastion_keys(fleet)
    out.text(known_hosts(keys, fleet.namespace, await fleet.servers()))


def known_hosts(keys: Mapping[str, str], namespace: str, servers: Iterable[DevServerObject]) -> str:
    """The bastion's authority comes first: its host key may be another one after a while."""
    lines = [f"{mark}{_BASTION} {keys[name].strip()}\n" for mark, name in _MARKS.items() if keys.get(name)]
    lines += [
        f"{one.meta.name}.{namespace} {one.status.ssh_host_key}\n"
        for one in servers
        if one.status.ssh_host_key is not None
    ]
    return "".join(lines)


async def _bastion_keys(fleet: DevServerApi) -> Mapping[str, str]:
    try:
        found = await fleet.client.get(CONFIG_MAP, BASTION_ACCOUNT, SYSTEM_NAMESPACE)
    except (NotFound, Denied):
        raise NotFound(
            "devservers.no_bastion",
            "This cluster has no SSH bastion yet.",
            hint="Ask an administrator to run: devctl install.",
        ) from None
    return found.data


def _user(fleet: DevServerApi) -> str:
    user = user_of(fleet.namespace)
    if not user:
        raise Conflict(
            "devservers.not_a_users_namespace",
            f"The namespace {fleet.namespace} is not that of a user.",
            hint="Name yours: devctl ssh-config --namespace dev-USER.",
        )
    return user
