"""How each kind of change to this machine is taken back. All of them bear to find nothing."""

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
    """`name` is the family and the name of an nftables table."""
    await _quietly("nft", "delete", "table", *name.split(" "))


async def _remove_folder(name: str) -> None:
    await to_thread.run_sync(lambda: shutil.rmtree(name, ignore_errors=True))


async def _remove_claim(name: str) -> None:
    """`name` is the link and what it points to: by now the link may be somebody else's."""
    link, _, target = name.partition(" -> ")
    if Path(link).is_symlink() and str(Path(link).readlink()) == target:
        Path(link).unlink()


async def _remove_mount(name: str) -> None:
    await _quietly("umount", "--lazy", "--recursive", name)


async def _remove_cgroup(name: str) -> None:
    """`name` is the path below each hierarchy: version 1 has many, version 2 one. Whoever is in it is ended."""
    await Cgroups().end(name, SystemClock())


async def _quietly(*argv: str) -> None:
    # Without the program nothing of its kind was made.
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
