"""Which cluster has which slot of this machine, whoever's it is.

A claim is a link to the cluster's folder: whichever process comes first has the slot. One whose folder is gone is nobody's.
"""

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from neorion.drydock.host.locks import locked

FOLDER: Final = Path(tempfile.gettempdir()) / "neorion-drydock"


async def take(slot: int, cluster: Path, folder: Path = FOLDER) -> bool:
    """Whether the slot is the cluster's now."""
    async with locked(folder):
        if folder.stat().st_uid == os.geteuid():
            # Every user of the machine claims here, and removes only what is theirs.
            folder.chmod(0o1777)
        claim = folder / str(slot)
        if not claim.exists():
            claim.unlink(missing_ok=True)
            claim.symlink_to(cluster)
        return claim.readlink() == cluster


async def release(slot: int, cluster: Path, folder: Path = FOLDER) -> None:
    """Gives the slot back if it is the cluster's."""
    async with locked(folder):
        claim = folder / str(slot)
        if claim.is_symlink() and claim.readlink() == cluster:
            claim.unlink()
        # The last one takes the folder with it.
        with suppress(OSError):
            folder.rmdir()
