"""Kernel limits that are too low for several nodes on one machine."""

from pathlib import Path
from typing import Final

# A kubelet, its container runtime and each followed log hold inotify instances; the usual 128 serve one or two nodes.
INOTIFY_INSTANCES: Final = 1024
_INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


def raise_inotify_limit(limit: Path = _INOTIFY) -> None:
    """Raises the limit, and never lowers it, because other clusters may need it later."""
    if int(limit.read_text()) < INOTIFY_INSTANCES:
        limit.write_text(str(INOTIFY_INSTANCES))
