"""Addresses by which editors open a folder of a server."""

import webbrowser
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct

from neorion.devservers.cli.options import ClusterSelector
from neorion.devservers.cli.session import run_with_api
from neorion.devservers.client import DevServerApi
from neorion.keel.base import Conflict, Invalid
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table


class EditorAddress(Struct, frozen=True):
    """Address that an editor of this machine opens."""

    server: str
    editor: str
    host: str
    url: str


def _remote_ssh(scheme: str) -> Callable[[str, str], str]:
    return lambda host, path: f"{scheme}://vscode-remote/ssh-remote+{quote(host)}{quote(path)}"


def _gateway(host: str, path: str) -> str:
    query = {"host": host, "port": 22, "user": "dev", "type": "ssh", "deploy": "true", "projectPath": path}
    return f"jetbrains-gateway://connect#{urlencode(query, quote_via=quote)}"


_ADDRESSES: Final[Mapping[str, Callable[[str, str], str]]] = MappingProxyType(
    {"vscode": _remote_ssh("vscode"), "cursor": _remote_ssh("cursor"), "jetbrains": _gateway}
)
_TABLE: Final[Table[EditorAddress]] = Table(
    (
        Column("Server", lambda one: one.server),
        Column("Editor", lambda one: one.editor),
        Column("Host", lambda one: one.host),
        Column("Address", lambda one: one.url),
    ),
    name=lambda one: one.url,
)


def editor_address(editor: str, host: str, path: str) -> str:
    if not path.startswith("/") or any(ord(letter) < 32 for letter in path):
        raise Invalid(
            "devservers.path",
            f'"{path}" is not a folder of a server.',
            hint="Write it from the root, as in /home/dev/project.",
        )
    return _ADDRESSES[editor](host, path)


async def open_server(
    fleet: DevServerApi, out: Output, name: str, target: tuple[str, str], *, show: bool
) -> None:
    editor, path = target
    host = f"{name}.{fleet.namespace}"
    url = editor_address(editor, host, path)
    server = await fleet.server(name)
    if server.status.ssh_endpoint is None:
        raise Conflict(
            "devservers.no_ssh",
            f"{name} has no SSH server, by which an editor could reach it.",
            hint="Start it, or ask an administrator for SSH.",
        )
    if out.shared.output is Format.TABLE:
        out.text(f"{url}\n")
    else:
        out.show_one(EditorAddress(name, editor, host, url), _TABLE)
    if not show and not webbrowser.open(url):
        out.warn(f"Nothing opens such addresses here. The host {host} is in: devctl ssh-config")


def open_command(
    out: Output, name: str, where: ClusterSelector, *, editor: str, path: str, show: bool
) -> None:
    run_with_api(out, where, lambda fleet: open_server(fleet, out, name, (editor, path), show=show))
