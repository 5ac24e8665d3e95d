"""Users of a cluster: the namespace, the account and the rights of each, and how they are given and taken back.

What a user does with them is no matter of this room.
"""

from neorion.devservers.adapters.users.entry import kubeconfig
from neorion.devservers.adapters.users.kit import Allowance, kit
from neorion.devservers.adapters.users.users import User, Users

__all__ = ["Allowance", "User", "Users", "kit", "kubeconfig"]
