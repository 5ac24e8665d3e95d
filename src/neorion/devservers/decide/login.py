"""Parses the user name of an SSH login: the user, and which of their servers."""

from dataclasses import dataclass
from typing import Final

from neorion.devservers.model import NAME_MAX
from neorion.devservers.model.tenancy import own_namespace
from neorion.devservers.model.user import USER_NAME_MAX
from neorion.keel.base import is_name

# Of a server, as it calls itself.
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Login:
    """`ann`, or `ann+mydev` for her server mydev."""

    user: str
    server: str = ""


def parse_login(text: str) -> Login | None:
    """None for every text that is not a login in small letters, digits and hyphens, to the letter."""
    user, plus, server = text.partition("+")
    if not _is_user(user) or (plus and not _is_server(server)):
        return None
    return Login(user, server)


def server_meant(login: Login, host: str) -> str | None:
    """The server of the user that a forward to `host` leads to; None if it is not one of theirs.

    `mydev`, and `mydev.dev-ann` as other users' programs write it. Who logged in to a server means it by localhost.
    """
    if login.server and host in _LOOPBACK:
        return login.server
    name, dot, namespace = host.partition(".")
    if not _is_server(name) or (dot and namespace != own_namespace(login.user)):
        return None
    return name if login.server in {"", name} else None


def user_of_claim(value: str, suffix: str) -> str | None:
    """The user that a claim names. None where the suffix is missing, or the rest is not a name to the letter."""
    if not value.endswith(suffix):
        return None
    user = value.removesuffix(suffix)
    return user if _is_user(user) else None


def _is_user(text: str) -> bool:
    return is_name(text) and len(text) <= USER_NAME_MAX


def _is_server(text: str) -> bool:
    return is_name(text) and len(text) <= NAME_MAX
