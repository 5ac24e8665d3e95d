"""Where the token of a control plane on this machine lies, for the clients of the same user."""

from collections.abc import Mapping


def token_file(env: Mapping[str, str], port: int) -> str:
    """The control plane writes it, readable by its user alone; a client that is given no token looks here."""
    home = env.get("XDG_STATE_HOME") or f"{env.get('HOME', '/')}/.local/state"
    return f"{home}/neorion/navarch/{port}.token"
