"""Runs a credential plugin: a program that prints an ExecCredential."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
import msgspec
from anyio.abc import ByteReceiveStream
from msgspec import Struct

from neorion.keel.base import Deadline, Instant, Invalid, Terminal
from neorion.keel.kube.client.cluster_config import ClientCertificate, ExecPlugin
from neorion.keel.kube.objects import instant

# The part of a plugin's stderr that an error shows.
STDERR_MAX = 400
STDERR_KEPT = 4096


@dataclass(frozen=True, slots=True)
class ExecCredential:
    """The credentials that a plugin printed."""

    token: str = field(repr=False)
    certificate: ClientCertificate | None
    expires: Instant | None


class _Status(Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _Credential(Struct, rename="camel"):
    api_version: str
    status: _Status | None = None


async def run_plugin(plugin: ExecPlugin) -> ExecCredential:
    info = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": False} | ({"cluster": plugin.cluster_info} if plugin.cluster_info else {}),
    }
    env = {**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
    stderr = bytearray()
    try:
        with anyio.fail_after(plugin.timeout.seconds):
            code, printed = await _run(plugin, env, stderr)
    except TimeoutError:
        raise Deadline(
            "kube.exec_slow",
            f"The exec plugin {plugin.command[0]} gave no credentials within {plugin.timeout}: "
            f"{_last(stderr) or 'it printed nothing'}",
            hint="Run it by hand: it may wait for a login.",
        ) from None
    except OSError as error:
        raise Terminal(
            "kube.exec_missing",
            f"The exec plugin {plugin.command[0]} cannot be run: {error.strerror}.",
            hint=plugin.install_hint or "Install it, or correct the kubeconfig.",
        ) from None
    if code != 0:
        raise Terminal(
            "kube.exec_failed",
            f"The exec plugin {plugin.command[0]} failed with {code}: {_last(stderr)}",
            hint=plugin.install_hint or "Run it by hand: it may require a new login.",
        )
    return _read(plugin, printed)


async def _run(plugin: ExecPlugin, env: Mapping[str, str], stderr: bytearray) -> tuple[int, bytes]:
    """Returns the plugin's exit code and stdout. Its stderr is appended to `stderr` as it arrives."""
    async with await anyio.open_process(plugin.command, stdin=subprocess.DEVNULL, env=env) as process:
        assert process.stdout is not None  # noqa: S101 -- a pipe by default
        assert process.stderr is not None  # noqa: S101 -- as above
        printed = bytearray()
        async with anyio.create_task_group() as group:
            group.start_soon(_collect, process.stderr, stderr)
            async for chunk in process.stdout:
                printed += chunk
        return await process.wait(), bytes(printed)


async def _collect(stream: ByteReceiveStream, stderr: bytearray) -> None:
    async for chunk in stream:
        stderr += chunk
        del stderr[:-STDERR_KEPT]
        # On a terminal the user sees it at once, because it may show a login page and a code.
        if sys.stderr.isatty():
            sys.stderr.write(chunk.decode(errors="replace"))
            sys.stderr.flush()


def _last(stderr: bytearray) -> str:
    return stderr.decode(errors="replace").strip()[-STDERR_MAX:]


def _read(plugin: ExecPlugin, printed: bytes) -> ExecCredential:
    try:
        credential = msgspec.json.decode(printed, type=_Credential)
    except (msgspec.DecodeError, UnicodeDecodeError):
        credential = _Credential("")
    status = credential.status or _Status()
    paired = bool(status.client_certificate_data) == bool(status.client_key_data)
    version_matches = credential.api_version == plugin.api_version
    if not version_matches or not paired or not (status.token or status.client_key_data):
        # The output may contain part of a secret, so the error does not repeat it.
        raise Invalid(
            "kube.exec_form",
            f"The exec plugin {plugin.command[0]} printed no ExecCredential of {plugin.api_version}.",
            hint="Compare the apiVersion in the kubeconfig with the plugin's manual.",
        )
    certificate = (
        ClientCertificate(status.client_certificate_data, status.client_key_data)
        if status.client_key_data
        else None
    )
    expires = instant(status.expiration_timestamp) if status.expiration_timestamp else None
    return ExecCredential(status.token, certificate, expires)
