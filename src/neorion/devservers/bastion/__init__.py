"""The SSH bastion: users log in with their keys and reach their own servers, and nothing else.

Users and their keys are read from DevServerUsers. Programs of users run in Pods of their own namespaces, never here.
"""

from neorion.devservers.bastion.audit_log import AuditLog
from neorion.devservers.bastion.containers import ClusterContainers
from neorion.devservers.bastion.context import Context
from neorion.devservers.bastion.directory import Directory
from neorion.devservers.bastion.first_logins import FirstLogins
from neorion.devservers.bastion.limits import DEFAULT_LIMITS, Limits
from neorion.devservers.bastion.retention import SWEEP_EVERY, Retention, sweep
from neorion.devservers.bastion.server import listen
from neorion.devservers.bastion.servers import ClusterServers
from neorion.devservers.bastion.session_objects import Replica, SessionObjects
from neorion.devservers.bastion.upstream import Signer

__all__ = [
    "DEFAULT_LIMITS",
    "SWEEP_EVERY",
    "AuditLog",
    "ClusterContainers",
    "ClusterServers",
    "Context",
    "Directory",
    "FirstLogins",
    "Limits",
    "Replica",
    "Retention",
    "SessionObjects",
    "Signer",
    "listen",
    "sweep",
]
