"""The SSH bastion: users log in with their keys and reach their own servers, and nothing else.

Who may log in and what belongs to whom is read from DevServerUsers. The process runs no program of any user.
"""

from neorion.devservers.bastion.audit_log import AuditLog
from neorion.devservers.bastion.context import Context
from neorion.devservers.bastion.directory import Directory
from neorion.devservers.bastion.limits import DEFAULT_LIMITS, Limits
from neorion.devservers.bastion.server import listen
from neorion.devservers.bastion.servers import ClusterServers
from neorion.devservers.bastion.upstream import Signer

__all__ = [
    "DEFAULT_LIMITS",
    "AuditLog",
    "ClusterServers",
    "Context",
    "Directory",
    "Limits",
    "Signer",
    "listen",
]
