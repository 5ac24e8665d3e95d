"""The names of what belongs to a user: one namespace, one account, one role."""

import re
from typing import Final

from neorion.keel.base import NAME_MAX

_OWN: Final = "dev-"
USER_LABEL: Final = "devserver.io/user"
CREATED_BY_LABEL: Final = "devserver.io/created-by"
ROLE: Final = "dev-user"
# As the label `devserver.io/created-by` says it.
USER_CONTROLLER: Final = "user-controller"
# The namespace of the platform, and its accounts there.
SYSTEM_NAMESPACE: Final = "devservers-system"
# Where warm Pods are. No account there has a right.
WARM_NAMESPACE: Final = "devservers-warm"
OPERATOR_ACCOUNT: Final = "devservers-operator"
BASTION_ACCOUNT: Final = "devservers-bastion"
# The ConfigMap in a user's namespace with the keys that all their servers accept.
USER_KEYS: Final = "devserver-user-keys"
# The queue of Kueue in a user's namespace. Not "default": Kueue would queue every Pod of such a namespace.
LOCAL_QUEUE: Final = "team"
# The Pod in a user's namespace that a login without a server lands in, its container, and the label that marks it.
CONSOLE: Final = "console"
CONSOLE_LABEL: Final = "devserver.io/console"
# The NetworkPolicy that lets consoles reach the API server.
CONSOLE_POLICY: Final = "dev-user-console"


def own_namespace(user: str) -> str:
    """`dev-<user>`, in the letters that a namespace may have."""
    plain = re.sub(r"[^a-z0-9-]+", "-", user.partition("@")[0].lower()).strip("-")
    return f"{_OWN}{plain}"[:NAME_MAX].rstrip("-")


def user_of(namespace: str) -> str:
    """The user that a namespace belongs to; empty for a namespace of no user."""
    return namespace.removeprefix(_OWN) if namespace.startswith(_OWN) else ""


def account_name(user: str) -> str:
    return f"user-{user}"


def login_name(user: str) -> str:
    """The user's name to the API server where a cluster has logins of its own, such as IAM, SSO or OIDC."""
    return f"devservers:{user}"
