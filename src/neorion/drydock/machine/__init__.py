"""What drydock asks of the machine it runs on: programs, control groups, kernel limits.

Nothing here knows what a cluster is.
"""

from neorion.drydock.machine.cgroups import Cgroups
from neorion.drydock.machine.commands import ask, reaching_all, where
from neorion.drydock.machine.sysctl import raise_inotify_limit

__all__ = ["Cgroups", "ask", "raise_inotify_limit", "reaching_all", "where"]
