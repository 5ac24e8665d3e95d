"""Requirements of real nodes on this machine. A control plane and simulated nodes need none of them."""

import shutil
from collections.abc import Mapping
from typing import Final

from neorion.drydock.machine import with_sbin_path
from neorion.keel.base import Denied, NotFound

# Program → Debian package.
PROGRAMS: Final = {
    "buildah": "buildah",
    "conntrack": "conntrack",
    "containerd": "containerd",
    "docker-registry": "docker-registry",
    "ip": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "runc": "runc",
}


def missing_programs(env: Mapping[str, str]) -> list[str]:
    path = with_sbin_path(env)["PATH"]
    return [program for program in PROGRAMS if shutil.which(program, path=path) is None]


def require_real_nodes(env: Mapping[str, str], user: int) -> None:
    """Fails before anything is created if a requirement is missing, with a hint."""
    instead = "or simulate nodes: neorion drydock up --simulated 2"
    if user != 0:
        raise Denied(
            "drydock.needs_root",
            "Real nodes require root: each has its own network and file systems.",
            hint=f"Run the same command as root, {instead}.",
        )
    missing = missing_programs(env)
    if missing:
        packages = sorted({PROGRAMS[program] for program in missing})
        raise NotFound(
            "drydock.needs_programs",
            f"Real nodes need programs that are not on this machine: {', '.join(missing)}.",
            hint=f"Install them (apt-get install {' '.join(packages)} on Debian), {instead}.",
        )
