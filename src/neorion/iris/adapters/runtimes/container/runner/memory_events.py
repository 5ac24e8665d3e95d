"""Kills in this container by the kernel, for want of memory."""

from pathlib import Path
from typing import Final

# Of control groups, version 2 and version 1.
_EVENTS: Final = (
    Path("/sys/fs/cgroup/memory.events"),
    Path("/sys/fs/cgroup/memory/memory.oom_control"),
)


def has_oom_kill() -> bool:
    """False where the container does not show its own control group."""
    for path in _EVENTS:
        try:
            counts = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
        except OSError:
            continue
        return int(counts.get("oom_kill", "0")) > 0
    return False
