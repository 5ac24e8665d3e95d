"""What drydock asks of the machine it runs on: programs, control groups, kernel limits.

Nothing here knows what a cluster is.
"""

from neorion.drydock.machine.cgroups import Cgroups
from neorion.drydock.machine.commands import ask, find, with_sbin_path
from neorion.drydock.machine.sysctl import raise_inotify_limit

__all__ = ["Cgroups", "ask", "find", "raise_inotify_limit", "with_sbin_path"]
