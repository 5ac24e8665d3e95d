"""Where a cluster's API is, whom to trust there, and who we are to it: plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from neorion.keel.base import Duration

# The longest an exec plugin may think: some open a browser, none may hang a controller for ever.
EXEC_TIMEOUT = Duration.of(seconds=60)


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose certificate the server must show: `ca` is PEM, and without it the system's authorities count."""

    ca: str = ""
    server_name: str = ""
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, both PEM."""

    chain: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A token that never changes."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A token that somebody else keeps fresh in a file, as the kubelet does for pods."""

    path: Path


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials: the way of clouds and single sign-on."""

    command: tuple[str, ...]
    api_version: str
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    install_hint: str = ""
    # What the plugin is told about the cluster when it wants to know.
    cluster_info: Mapping[str, object] | None = None
    timeout: Duration = EXEC_TIMEOUT


Source: TypeAlias = StaticToken | TokenFile | ExecPlugin


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Acting as somebody else, with that one's rights. Needs the right to impersonate."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class Cluster:
    """All it takes to speak to an API server."""

    server: str
    trust: Trust = Trust()
    certificate: Certificate | None = None
    source: Source | None = None
    namespace: str = "default"
    proxy: str = ""
    acting_as: Impersonation | None = None
