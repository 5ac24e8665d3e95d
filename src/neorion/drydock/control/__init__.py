"""The control plane of a cluster: who takes part in it, and the command lines of its parts.

Starting and waiting is `Cluster`'s; nodes are not part of it.
"""

from neorion.drydock.control.identities import make_identities
from neorion.drydock.control.parts import PROGRAMS, api_server, controller_manager, etcd, scheduler

__all__ = ["PROGRAMS", "api_server", "controller_manager", "etcd", "make_identities", "scheduler"]
