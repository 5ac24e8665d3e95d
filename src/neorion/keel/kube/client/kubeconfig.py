"""Clusters from kubeconfig files, read as kubectl reads them."""

import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
import yaml
from msgspec import Struct

from neorion.keel.base import Invalid, NotFound, did_you_mean
from neorion.keel.kube.client.cluster_config import (
    CaBundle,
    ClientCertificate,
    ClusterConfig,
    ExecPlugin,
    Impersonation,
    Source,
    StaticToken,
    TokenFile,
)
from neorion.keel.kube.client.yaml_bounds import LOADER, exceeded_bound

T = TypeVar("T")

# Errors that PyYAML raises for dates, numbers and tags whose text does not fit their type.
_SCALAR_ERRORS = (ValueError, TypeError, AttributeError, LookupError, OverflowError)

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class _Extension(Struct, frozen=True):
    name: str = ""
    extension: object = None


class _Cluster(Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    proxy_url: str = ""
    extensions: tuple[_Extension, ...] | None = None


class _EnvVar(Struct, frozen=True):
    name: str
    value: str


class _Exec(Struct, frozen=True, rename="camel"):
    command: str
    api_version: str
    args: tuple[str, ...] | None = None
    env: tuple[_EnvVar, ...] | None = None
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class _User(Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    exec: _Exec | None = None
    auth_provider: object = None
    username: str = ""
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class _Context(Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(Struct, frozen=True):
    name: str
    cluster: _Cluster = _Cluster()


class _NamedUser(Struct, frozen=True):
    name: str
    user: _User | None = None


class _NamedContext(Struct, frozen=True):
    name: str
    context: _Context = _Context()


class _File(Struct, frozen=True, rename="kebab"):
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None


class _Entry(Struct, Generic[T], frozen=True):
    """An entry and the folder its relative paths start from."""

    value: T
    folder: Path

    def text(self, data: str, file: str, what: str) -> str:
        """Reads inline data or a file; inline data counts first, as for kubectl."""
        if data:
            return _decoded(data, what)
        return _read(self.folder / file, what) if file else ""

    def file(self, data: str, file: str) -> Path | None:
        """The file from which that text was read."""
        return self.folder / file if file and not data else None


class Kubeconfig(Struct, frozen=True):
    """One or several files merged: of entries with the same name, the first counts."""

    current: str
    contexts: Mapping[str, _Context]
    clusters: Mapping[str, _Entry[_Cluster]]
    users: Mapping[str, _Entry[_User]]

    def cluster(self, context: str = "") -> ClusterConfig:
        """The cluster of a context; without a name, of the current one."""
        chosen = _known(self.contexts, context or self.current, "context")
        place = _known(self.clusters, chosen.cluster, "cluster")
        user = _known(self.users, chosen.user, "user") if chosen.user else _Entry(_User(), Path())
        if not place.value.server.startswith(("https://", "http://")):
            raise Invalid(
                "kube.server",
                f'The kubeconfig gives cluster "{chosen.cluster}" no usable server.',
                hint='Write "server: https://host:6443".',
            )
        if place.value.insecure_skip_tls_verify and (
            place.value.certificate_authority_data or place.value.certificate_authority
        ):
            raise Invalid(
                "kube.insecure_authority",
                f'The kubeconfig gives cluster "{chosen.cluster}" an authority and says not to check it.',
                hint="Remove insecure-skip-tls-verify, or remove certificate-authority.",
            )
        authority = (place.value.certificate_authority_data, place.value.certificate_authority)
        trust = CaBundle(
            place.text(*authority, "authority"),
            place.value.tls_server_name,
            place.value.insecure_skip_tls_verify,
            place.file(*authority),
        )
        return ClusterConfig(
            place.value.server.rstrip("/"),
            trust,
            _certificate(user),
            _source(user, place.value, trust),
            chosen.namespace or "default",
            place.value.proxy_url,
            _acting_as(user.value),
        )


def kubeconfig_paths(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """The files that kubectl reads: those of KUBECONFIG, or ~/.kube/config."""
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path(environ.get("HOME") or Path.home()) / ".kube" / "config"]


def read_kubeconfig(paths: Sequence[Path]) -> Kubeconfig:
    """Reads the files that exist; fails if none does."""
    files = [(path.parent, _parse(path)) for path in paths if path.exists()]
    if not files:
        raise NotFound(
            "kube.no_config",
            f"No kubeconfig exists at {', '.join(map(str, paths))}.",
            hint="Set KUBECONFIG, or give the path.",
        )
    contexts: dict[str, _Context] = {}
    clusters: dict[str, _Entry[_Cluster]] = {}
    users: dict[str, _Entry[_User]] = {}
    for folder, file in files:
        for context in file.contexts or ():
            contexts.setdefault(context.name, context.context)
        for cluster in file.clusters or ():
            clusters.setdefault(cluster.name, _Entry(cluster.cluster, folder))
        for user in file.users or ():
            users.setdefault(user.name, _Entry(user.user or _User(), folder))
    current = next((file.current_context for _, file in files if file.current_context), "")
    return Kubeconfig(current, contexts, clusters, users)


def _parse(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
        if exceeded := exceeded_bound(text):
            raise Invalid(
                "kube.config_size",
                f"The kubeconfig {path} is refused: {exceeded}.",
                hint="Compare it with `kubectl config view`.",
            )
        return msgspec.convert(yaml.load(text, LOADER) or {}, _File)  # noqa: S506 -- a safe loader, as its name states
    except OSError as error:
        raise Invalid(
            "kube.config_file",
            f"The kubeconfig {path} cannot be read: {error.strerror}.",
            hint="Check its owner and mode.",
        ) from None
    except (yaml.YAMLError, *_SCALAR_ERRORS) as error:
        # Other errors quote the text, which may be a key.
        where = getattr(error, "problem_mark", None)
        safe = isinstance(error, UnicodeDecodeError | msgspec.ValidationError)
        reason = (
            f"line {where.line + 1}" if where else str(error) if safe else "one of its values cannot be read"
        )
        raise Invalid(
            "kube.config_form",
            f"The kubeconfig {path} is malformed: {reason}.",
            hint="Compare it with `kubectl config view`.",
        ) from None


def _known(entries: Mapping[str, T], name: str, what: str) -> T:
    if name in entries:
        return entries[name]
    if not name:
        raise NotFound(
            "kube.no_context",
            f"The kubeconfig names no current {what}.",
            hint="Choose a context: " + ", ".join(sorted(entries)) if entries else "Give the file a context.",
        )
    raise NotFound(
        "kube.config_entry",
        f'The kubeconfig has no {what} "{name}".',
        hint=did_you_mean(name, entries) or f"Add a {what} of that name.",
    )


def _decoded(data: str, what: str) -> str:
    try:
        # Joined first, because `base64` wraps lines by default and kubectl accepts that.
        return b64decode("".join(data.split()), validate=True).decode()
    except (NotBase64, UnicodeDecodeError):
        raise Invalid(
            "kube.config_data",
            f"The kubeconfig's {what} data are not Base64 of a PEM text.",
            hint="Encode the PEM file with `base64 -w0`.",
        ) from None


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise Invalid(
            "kube.config_path",
            f"The {what} file {path} of the kubeconfig cannot be read.",
            hint="Check that it exists and that you may read it.",
        ) from None


def _certificate(user: _Entry[_User]) -> ClientCertificate | None:
    data = user.value
    chain = user.text(data.client_certificate_data, data.client_certificate, "certificate")
    key = user.text(data.client_key_data, data.client_key, "key")
    if bool(chain) != bool(key):
        raise Invalid(
            "kube.half_certificate",
            "The kubeconfig's user has a certificate without a key, or a key without a certificate.",
            hint="Give both client-certificate and client-key.",
        )
    chain_file = user.file(data.client_certificate_data, data.client_certificate)
    key_file = user.file(data.client_key_data, data.client_key)
    # A renewed certificate would not fit an old key, so both or neither are renewed.
    files = (chain_file, key_file) if chain_file is not None and key_file is not None else None
    return ClientCertificate(chain, key, files) if chain else None


def _source(user: _Entry[_User], cluster: _Cluster, trust: CaBundle) -> Source | None:
    value = user.value
    if value.auth_provider is not None or value.username:
        raise Invalid(
            "kube.old_login",
            "The kubeconfig's user logs in by an auth-provider or a password, which Kubernetes has dropped.",
            hint="Use an exec plugin, a token or a client certificate.",
        )
    if value.exec is not None:
        return _plugin(value.exec, user.folder, cluster, trust)
    if value.token_file:
        return TokenFile(user.folder / value.token_file)
    return StaticToken(value.token) if value.token else None


def _plugin(plugin: _Exec, folder: Path, cluster: _Cluster, trust: CaBundle) -> ExecPlugin:
    if plugin.api_version not in _EXEC_VERSIONS:
        raise Invalid(
            "kube.exec_version",
            f'The exec plugin {plugin.command} uses the API version "{plugin.api_version}".',
            hint=f"Use {_EXEC_VERSIONS[0]}.",
        )
    if plugin.interactive_mode == "Always":
        raise Invalid(
            "kube.exec_interactive",
            f"The exec plugin {plugin.command} needs a terminal, which this program does not have.",
            hint="Set interactiveMode to IfAvailable or Never.",
        )
    info: dict[str, object] | None = None
    if plugin.provide_cluster_info:
        settings = (one.extension for one in cluster.extensions or () if one.name == _EXEC_EXTENSION)
        info = {
            "server": cluster.server,
            "tls-server-name": cluster.tls_server_name,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "certificate-authority-data": trust.ca.encode(),
            "proxy-url": cluster.proxy_url,
            "config": next(settings, None),
        }
    # A command with a slash is a path beside the file; without one it is looked up in PATH.
    command = str(folder / plugin.command) if "/" in plugin.command else plugin.command
    return ExecPlugin(
        (command, *(plugin.args or ())),
        plugin.api_version,
        {variable.name: variable.value for variable in plugin.env or ()},
        plugin.install_hint,
        info,
    )


def _acting_as(user: _User) -> Impersonation | None:
    if not user.as_user:
        if user.as_groups or user.as_uid or user.as_user_extra:
            # As kubectl: a user that should have fewer rights must not get all of them.
            raise Invalid(
                "kube.impersonation",
                "The kubeconfig's user has impersonation settings without a user name.",
                hint='Write "as" beside as-groups, as-uid and as-user-extra, or leave them out.',
            )
        return None
    return Impersonation(user.as_user, user.as_groups, user.as_uid, user.as_user_extra)
