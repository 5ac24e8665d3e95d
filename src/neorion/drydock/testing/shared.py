"""One cluster for a whole test run, however many processes take part in it."""

import fcntl
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio

from neorion.drydock.cluster import Cluster
from neorion.drydock.yard import NOTHING_MORE, Wishes, Yard


@contextmanager
def shared_cluster(name: str, yard: Yard, wishes: Wishes = NOTHING_MORE) -> Generator[Cluster]:
    """The first to come makes the cluster, the last to leave removes it.

    Who uses it holds a lock that the kernel releases even when a process is killed, so a cluster that nobody could
    remove is found by the next run of the same name, and made anew.
    """
    folder = Path(tempfile.gettempdir())
    with (
        (folder / f"neorion-{name}.gate").open("w") as gate,
        (folder / f"neorion-{name}.users").open("w") as users,
    ):
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


def _is_alone(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
