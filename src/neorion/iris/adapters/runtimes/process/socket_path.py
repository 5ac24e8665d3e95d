"""Sockets in folders of any depth: the kernel takes a hundred bytes of path, and folders of users are deeper than that."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def short_name(path: str) -> Generator[str]:
    """Another name for the same place, good while the block runs: below an open handle of its folder."""
    folder, name = os.path.split(path)
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
