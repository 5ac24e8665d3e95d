"""The names of what belongs to a user: one namespace, one account, one role."""

import re
from typing import Final

from neorion.keel.base import NAME_MAX

USER_LABEL: Final = "devserver.io/user"
CREATED_BY_LABEL: Final = "devserver.io/created-by"
ROLE: Final = "dev-user"


def own_namespace(user: str) -> str:
    """`dev-<user>`, in the letters that a namespace may have."""
    plain = re.sub(r"[^a-z0-9-]+", "-", user.partition("@")[0].lower()).strip("-")
    return f"dev-{plain}"[:NAME_MAX].rstrip("-")


def account_name(user: str) -> str:
    return f"user-{user}"
