"""Short paths of sockets: the kernel limits them to about a hundred bytes, and users' folders may be deeper."""

import os
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def short_name(path: str) -> Generator[str]:
    """Short path of the same socket within the block, by a handle of its folder."""
    folder, name = os.path.split(path)
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
