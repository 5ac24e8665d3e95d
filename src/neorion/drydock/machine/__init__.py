"""Access to the machine: programs, control groups, kernel limits.

Independent of clusters.
"""

from neorion.drydock.machine.cgroups import Cgroups
from neorion.drydock.machine.commands import ask, find, with_sbin_path
from neorion.drydock.machine.sysctl import raise_inotify_limit

__all__ = ["Cgroups", "ask", "find", "raise_inotify_limit", "with_sbin_path"]
