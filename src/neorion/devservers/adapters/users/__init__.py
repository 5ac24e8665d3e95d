"""Users of a cluster as an administrator sees them: DevServerUsers written, listed and removed, and kubeconfigs made.

What becomes of a DevServerUser is the user controller's work.
"""

from neorion.devservers.adapters.users.kubeconfig import kubeconfig, login_kubeconfig
from neorion.devservers.adapters.users.users import TenantManager, User, UserRequest

__all__ = ["TenantManager", "User", "UserRequest", "kubeconfig", "login_kubeconfig"]
