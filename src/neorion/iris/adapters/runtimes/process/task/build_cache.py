"""What tasks share because they ask for the same: named by what was asked for, made by one at a time."""

import fcntl
import hashlib
import json
import sys
import sysconfig
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path


def key_of(*wanted: Sequence[str]) -> str:
    """Another Python or another machine is another content."""
    named = [sys.version, sysconfig.get_platform(), *map(list, wanted)]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]


@contextmanager
def exclusive(made: Path) -> Generator[None]:
    """Others who would make the same wait. The kernel lets go when the holder dies, so a killed build never blocks the next."""
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
