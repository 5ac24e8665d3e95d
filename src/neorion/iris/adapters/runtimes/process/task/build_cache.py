"""Shared builds of tasks with equal requests: named by a hash of the request, and made by one task at a time."""

import fcntl
import hashlib
import json
import sys
import sysconfig
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path


def key_of(*requested: Sequence[str]) -> str:
    """Hash of a request. It includes the Python version and the machine."""
    named = [sys.version, sysconfig.get_platform(), *map(list, requested)]
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32]


@contextmanager
def exclusive(made: Path) -> Generator[None]:
    """Lock of one build. The kernel releases it when its holder dies, so a killed build never blocks the next."""
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
