"""The names of what belongs to a user: one namespace, one account, one role."""

import re
from typing import Final

from neorion.keel.base import NAME_MAX

_OWN: Final = "dev-"
USER_LABEL: Final = "devserver.io/user"
CREATED_BY_LABEL: Final = "devserver.io/created-by"
ROLE: Final = "dev-user"


def own_namespace(user: str) -> str:
    """`dev-<user>`, in the letters that a namespace may have."""
    plain = re.sub(r"[^a-z0-9-]+", "-", user.partition("@")[0].lower()).strip("-")
    return f"{_OWN}{plain}"[:NAME_MAX].rstrip("-")


def user_of(namespace: str) -> str:
    """Whose own it is; empty for a namespace that is nobody's own."""
    return namespace.removeprefix(_OWN) if namespace.startswith(_OWN) else ""


def account_name(user: str) -> str:
    return f"user-{user}"
