"""Undo functions for each kind of change to this machine. All of them accept that the change is missing."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from neorion.drydock.host.undo_log import Undo
from neorion.drydock.machine import Cgroups, with_sbin_path
from neorion.keel.clock import SystemClock


async def _remove_link(name: str) -> None:
    await _quietly("ip", "link", "delete", name)


async def _remove_namespace(name: str) -> None:
    await _quietly("ip", "netns", "delete", name)


async def _remove_route(destination: str) -> None:
    await _quietly("ip", "route", "delete", destination)


async def _remove_table(name: str) -> None:
    """Removes a table; `name` is the family and the name of an nftables table."""
    await _quietly("nft", "delete", "table", *name.split(" "))


async def _remove_folder(name: str) -> None:
    await to_thread.run_sync(lambda: shutil.rmtree(name, ignore_errors=True))


async def _remove_claim(name: str) -> None:
    """Removes a claim; `name` is the link and its target. Keeps a link that another cluster has taken meanwhile."""
    link, _, target = name.partition(" -> ")
    if Path(link).is_symlink() and str(Path(link).readlink()) == target:
        Path(link).unlink()


async def _remove_mount(name: str) -> None:
    await _quietly("umount", "--lazy", "--recursive", name)


async def _remove_cgroup(name: str) -> None:
    """Ends all processes of a control group and removes it; `name` is the path below each hierarchy."""
    await Cgroups().end(name, SystemClock())


async def _quietly(*argv: str) -> None:
    # If the program is missing, nothing of its kind was created.
    with suppress(FileNotFoundError):
        await anyio.run_process(argv, check=False, env=with_sbin_path(os.environ))


UNDO: Final[dict[str, Undo]] = {
    "claim": _remove_claim,
    "cgroup": _remove_cgroup,
    "folder": _remove_folder,
    "link": _remove_link,
    "mount": _remove_mount,
    "namespace": _remove_namespace,
    "route": _remove_route,
    "table": _remove_table,
}
