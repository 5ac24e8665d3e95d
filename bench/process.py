"""What a process has taken of the machine, by /proc."""

import os
from pathlib import Path
from typing import Final

from neorion.drydock.cluster import Cluster
from neorion.drydock.host import running

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Its own processor time so far."""
    times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / _TICKS_PER_S


def peak_mb(pid: int) -> float:
    """The most memory it ever had."""
    return memory_mb(pid, "VmHWM")


def memory_mb(pid: int, key: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


def cluster_cpu_s(cluster: Cluster) -> float:
    """Of the API server, its store and its controllers, since they began."""
    return sum(cpu_s(process.pid) for process in running(cluster.layout.folder))
