"""Everything a cluster could leave behind on this machine."""

import subprocess
from pathlib import Path

from neorion.drydock.host import running
from neorion.drydock.layout import Layout
from neorion.drydock.slots import CLAIMS
from tools import system


def traces(layout: Layout) -> list[str]:
    """Processes, files, mounts, links, tables and control groups of one cluster."""
    bridge = layout.addresses.bridge
    found = [f"process {process.part} {process.pid}" for process in running(layout.folder)]
    found += [f"file {path}" for path in layout.folder.rglob("*")]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found += [f"mount {line}" for line in mounts if str(layout.folder) in line]
    links = Path("/sys/class/net").iterdir()
    found += [
        f"link {path.name}" for path in links if path.name == bridge or path.name.startswith(f"{bridge}n")
    ]
    groups = (*Path("/sys/fs/cgroup").glob(bridge), *Path("/sys/fs/cgroup").glob(f"*/{bridge}"))
    found += [f"group {path}" for path in groups]
    found += [f"claim {link}" for link in CLAIMS.glob("*") if link.readlink() == layout.folder]
    nft = system.find("nft")
    if nft is not None:
        listed = subprocess.run([nft, "list", "tables"], capture_output=True, text=True, check=False)
        found += [f"nftables {line}" for line in listed.stdout.splitlines() if line.split()[-1] == bridge]
    return found
