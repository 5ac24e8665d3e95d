"""Removes secrets from the environment of this process, also from the copy that the kernel shows in /proc."""

import ctypes
import os
from collections.abc import Collection

from neorion.keel.telemetry import logger

log = logger(__name__)


def erase_from_environment(secrets: Collection[str]) -> None:
    """Erases every variable with one of the secrets as its value.

    Unsetting alone is not enough: the strings of the first environment stay in memory, and processes of the same user read
    them in /proc/PID/environ.
    """
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_void_p
    for name, value in list(os.environ.items()):
        if value and value in secrets:
            encoded = os.fsencode(name)
            if (place := libc.getenv(encoded)) is not None:
                ctypes.memset(place, 0, len(os.fsencode(value)))
            del os.environ[name]
            log.info("erased a secret from the environment", variable=name)
