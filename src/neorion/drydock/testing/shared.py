"""One cluster for a whole test run, shared by all of its processes."""

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import anyio

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import NO_EXTRAS, ClusterManager, ClusterOptions
from neorion.keel.base import Denied


@contextmanager
def shared_cluster(
    name: str, manager: ClusterManager, wishes: ClusterOptions = NO_EXTRAS
) -> Generator[Cluster]:
    """The first process creates the cluster, the last one removes it.

    Each user holds a lock that the kernel releases even when a process is killed. A cluster that remained is
    therefore found by the next run of the same name, and created again.
    """
    with _opened(name, "gate") as gate, _opened(name, "users") as users:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if _is_alone(users.fileno()):
            anyio.run(manager.down, name)
            anyio.run(manager.up, name, wishes)
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield manager.find(name)
        finally:
            fcntl.flock(gate, fcntl.LOCK_EX)
            if _is_alone(users.fileno()):
                anyio.run(manager.down, name)


def is_shared(name: str) -> bool:
    """True if a cluster of this name is, or was, shared by the processes of a test run."""
    return _lock(name, "gate").exists()


def remove_unused(name: str, manager: ClusterManager) -> bool:
    """Removes a shared cluster that no running process uses. Returns true if it did."""
    with _opened(name, "gate") as gate, _opened(name, "users") as users:
        # The holder of the gate creates the cluster, or removes it.
        if not (_is_alone(gate.fileno()) and _is_alone(users.fileno())):
            return False
        anyio.run(manager.down, name)
        return True


def _lock(name: str, purpose: str) -> Path:
    return Path(tempfile.gettempdir()) / f"neorion-{name}.{purpose}"


def _opened(name: str, purpose: str) -> BinaryIO:
    """Opens the lock file, which has a fixed name in a folder that all users share.

    A link or a file of another user is refused: otherwise root would write to a path that the other user chooses.
    """
    path = _lock(name, purpose)
    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+b")
    except OSError as error:
        raise _foreign(path) from error
    if os.fstat(file.fileno()).st_uid != os.geteuid():
        file.close()
        raise _foreign(path)
    return file


def _foreign(path: Path) -> Denied:
    return Denied(
        "drydock.lock",
        f"The lock file {path} belongs to another user, or is a link.",
        hint="Remove it, or set TMPDIR to a folder of your own.",
    )


def _is_alone(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
