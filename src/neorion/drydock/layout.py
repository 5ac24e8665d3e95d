"""The folders, ports and networks of a cluster, derived from its name and its slot."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from neorion.drydock.network import Addresses

# Ports 20000 to 24095: below the kernel's range for clients.
_FIRST_PORT: Final = 20_000
_PORTS_EACH: Final = 64
_LINKS: Final = Path("/sys/class/net")
LOOPBACK: Final = "127.0.0.1"


class PortOffset(IntEnum):
    """The port of each component, counted from a cluster's first port."""

    ETCD = 0
    ETCD_PEER = 1
    API = 2
    CONTROLLER_MANAGER = 3
    SCHEDULER = 4
    KWOK = 5
    KUEUE_WEBHOOK = 6
    KUEUE_METRICS = 7
    KUEUE_VISIBILITY = 8
    KUEUE_HEALTH = 9
    DNS_HEALTH = 10
    REGISTRY = 11
    COREWEAVE_WEBHOOK = 12
    CUSTOM_METRICS = 13
    KARPENTER_METRICS = 14
    KARPENTER_HEALTH = 15
    PROMETHEUS = 16
    COSCHEDULING = 17
    JOBSET_WEBHOOK = 18
    JOBSET_HEALTH = 19


def state_folder(env: Mapping[str, str]) -> Path:
    """The folder that contains one folder for each cluster."""
    home = env.get("XDG_STATE_HOME") or Path(env.get("HOME", "/")) / ".local/state"
    return Path(home) / "neorion" / "drydock"


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths and addresses of one cluster. `networked` clusters have a bridge, to which real nodes are attached."""

    folder: Path
    slot: int
    networked: bool = False

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def addresses(self) -> Addresses:
        return Addresses(self.slot)

    @property
    def address(self) -> str:
        """The address of the API server and of all services that pods may call."""
        return str(self.addresses.host) if self.networked else LOOPBACK

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.port(PortOffset.API)}"

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        return self.folder / "kubeconfig"

    def port(self, offset: PortOffset) -> int:
        return _FIRST_PORT + self.slot * _PORTS_EACH + offset

    def kubeconfig_of(self, who: str) -> Path:
        return self.folder / "kubeconfigs" / who

    def log(self, part: str) -> Path:
        return self.logs / f"{part}.log"

    def data(self, part: str) -> Path:
        return self.folder / "data" / part

    def make_folders(self) -> None:
        for folder in ("pki", "kubeconfigs", "logs", "data"):
            (self.folder / folder).mkdir(mode=0o700, parents=True, exist_ok=True)


def slot_is_free(slot: int) -> bool:
    """True if the ports and the bridge of the slot are unused, because other users have their own list of clusters."""
    ports = (_FIRST_PORT + slot * _PORTS_EACH + offset for offset in PortOffset)
    return not (_LINKS / Addresses(slot).bridge).exists() and all(map(_is_free, ports))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # On every address, because a cluster with a network listens on its bridge.
            probe.bind(("", port))
        except OSError:
            return False
    return True
