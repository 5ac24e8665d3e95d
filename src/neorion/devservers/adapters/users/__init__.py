"""Users of a cluster as an administrator sees them: DevServerUsers written, listed and removed, and kubeconfigs made.

What becomes of a DevServerUser is the user controller's work.
"""

from neorion.devservers.adapters.users.kubeconfig import kubeconfig
from neorion.devservers.adapters.users.users import User, UserRequest, Users

__all__ = ["User", "UserRequest", "Users", "kubeconfig"]
