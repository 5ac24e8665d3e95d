"""Where a cluster's API is, whom to trust there, and who we are to it: plain values."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from neorion.keel.base import Duration

# The longest an exec plugin may think: some open a browser, none may hang a controller for ever.
EXEC_TIMEOUT = Duration.of(seconds=60)


class CaBundle(Struct, frozen=True):
    """Whose certificate the server must show: `ca` is PEM, and without it the system's authorities count."""

    ca: str = ""
    server_name: str = ""
    insecure: bool = False
    # Where `ca` was read: somebody may renew it there.
    file: Path | None = None


class ClientCertificate(Struct, frozen=True):
    """A client certificate and its key, both PEM."""

    chain: str
    key: str
    # Where the two were read: somebody may renew them there.
    files: tuple[Path, Path] | None = None

    def __repr__(self) -> str:
        return f"Certificate({self.chain!r})"


class StaticToken(Struct, frozen=True):
    """A token that never changes."""

    text: str

    def __repr__(self) -> str:
        return "StaticToken()"


class TokenFile(Struct, frozen=True):
    """A token that somebody else keeps fresh in a file, as the kubelet does for pods."""

    path: Path


class ExecPlugin(Struct, frozen=True):
    """A program that prints credentials: the way of clouds and single sign-on."""

    command: tuple[str, ...]
    api_version: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    install_hint: str = ""
    # What the plugin is told about the cluster when it wants to know.
    cluster_info: Mapping[str, object] | None = None
    timeout: Duration = EXEC_TIMEOUT

    def __repr__(self) -> str:
        # What it is told in its environment may be secret.
        return f"ExecPlugin({self.command!r}, {self.api_version!r})"


Source: TypeAlias = StaticToken | TokenFile | ExecPlugin


class Impersonation(Struct, frozen=True):
    """Acting as somebody else, with that one's rights. Needs the right to impersonate."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class ClusterConfig(Struct, frozen=True):
    """All it takes to speak to an API server."""

    server: str
    trust: CaBundle = CaBundle()
    certificate: ClientCertificate | None = None
    source: Source | None = None
    namespace: str = "default"
    proxy: str = ""
    acting_as: Impersonation | None = None
    # What the environment names where nothing else does: this process's own way, written into no kubeconfig.
    usual_proxy: str = ""

    def __repr__(self) -> str:
        # A proxy's address may hold a password.
        return f"Cluster({self.server!r})"
