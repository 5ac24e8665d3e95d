"""A folder as its own lock: nothing is left behind that only was a lock."""

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread


@asynccontextmanager
async def locked(folder: Path) -> AsyncGenerator[None]:
    """One holder at a time, among all processes. Makes the folder if it is not there; the holder may remove it."""
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            await to_thread.run_sync(fcntl.flock, handle, fcntl.LOCK_EX, abandon_on_cancel=True)
            # The holder before us may have removed what we waited for.
            if _is_same(folder, handle):
                yield
                return
        finally:
            os.close(handle)


def _is_same(folder: Path, handle: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
