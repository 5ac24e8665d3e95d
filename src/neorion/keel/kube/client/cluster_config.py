"""The connection to a cluster as plain values: server address, trusted authorities, and credentials."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from neorion.keel.base import Duration

# The limit for an exec plugin: some open a browser, none may block a controller for ever.
EXEC_TIMEOUT = Duration.of(seconds=60)


class CaBundle(Struct, frozen=True):
    """Trust in the server's certificate: `ca` is PEM; without it the system's authorities count."""

    ca: str = ""
    server_name: str = ""
    insecure: bool = False
    # The file that `ca` was read from. It may be renewed there.
    file: Path | None = None


class ClientCertificate(Struct, frozen=True):
    """A client certificate and its key, both PEM."""

    chain: str
    key: str
    # The files that the two were read from. They may be renewed there.
    files: tuple[Path, Path] | None = None

    def __repr__(self) -> str:
        return f"Certificate({self.chain!r})"


class StaticToken(Struct, frozen=True):
    """A token that never changes."""

    text: str

    def __repr__(self) -> str:
        return "StaticToken()"


class TokenFile(Struct, frozen=True):
    """A token that another process renews in a file, as the kubelet does for pods."""

    path: Path


class ExecPlugin(Struct, frozen=True):
    """A program that prints credentials, used by clouds and single sign-on."""

    command: tuple[str, ...]
    api_version: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    install_hint: str = ""
    # The cluster's description for plugins that request it.
    cluster_info: Mapping[str, object] | None = None
    timeout: Duration = EXEC_TIMEOUT

    def __repr__(self) -> str:
        # The plugin's environment may contain secrets.
        return f"ExecPlugin({self.command!r}, {self.api_version!r})"


Source: TypeAlias = StaticToken | TokenFile | ExecPlugin


class Impersonation(Struct, frozen=True):
    """Impersonation of another user, with that user's rights. Requires the right to impersonate."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


class ClusterConfig(Struct, frozen=True):
    """Everything needed to connect to an API server."""

    server: str
    trust: CaBundle = CaBundle()
    certificate: ClientCertificate | None = None
    source: Source | None = None
    namespace: str = "default"
    proxy: str = ""
    acting_as: Impersonation | None = None
    # The proxy from the environment, used if the kubeconfig has none. Never written into a kubeconfig.
    usual_proxy: str = ""

    def __repr__(self) -> str:
        # The address of a proxy may contain a password.
        return f"Cluster({self.server!r})"
