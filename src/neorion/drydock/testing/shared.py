"""One cluster for a whole test run, however many processes take part in it."""

import fcntl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import NO_EXTRAS, ClusterManager, ClusterOptions


@contextmanager
def shared_cluster(name: str, yard: ClusterManager, wishes: ClusterOptions = NO_EXTRAS) -> Generator[Cluster]:
    """The first to come makes the cluster, the last to leave removes it.

    Who uses it holds a lock that the kernel releases even when a process is killed, so a cluster that nobody could
    remove is found by the next run of the same name, and made anew.
    """
    with _lock(name, "gate").open("w") as gate, _lock(name, "users").open("w") as users:
        fcntl.flock(gate, fcntl.LOCK_EX)
        if _is_alone(users.fileno()):
            anyio.run(yard.down, name)
            anyio.run(yard.up, name, wishes)
        fcntl.flock(users, fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        try:
            yield yard.find(name)
        finally:
            fcntl.flock(gate, fcntl.LOCK_EX)
            if _is_alone(users.fileno()):
                anyio.run(yard.down, name)


def is_shared(name: str) -> bool:
    """Whether a cluster of this name is, or was, shared by the processes of a test run."""
    return _lock(name, "gate").exists()


def remove_unused(name: str, yard: ClusterManager) -> bool:
    """Removes a shared cluster that no live process uses. Whether it did."""
    with _lock(name, "gate").open("w") as gate, _lock(name, "users").open("w") as users:
        # Whoever holds the gate makes the cluster, or removes it.
        if not (_is_alone(gate.fileno()) and _is_alone(users.fileno())):
            return False
        anyio.run(yard.down, name)
        return True


def _lock(name: str, purpose: str) -> Path:
    return Path(tempfile.gettempdir()) / f"neorion-{name}.{purpose}"


def _is_alone(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
