"""Folders that only their owner may enter."""

import os
from collections.abc import Iterable
from pathlib import Path

_OTHERS = 0o077


def make_private(folders: Iterable[Path]) -> None:
    """Makes each folder. One that is there and is ours is closed to others: an older version may have left it open."""
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
            folder.chmod(found.st_mode & 0o700)
