"""Checks of a database file: one owner, a local disk, and a single name."""

import errno
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from neorion.keel.base import Conflict, Denied, Invalid, NotFound
from neorion.keel.store.engine import StorageFailed, full

# Locks and shared memory on these do not reach other machines, and a sync may not be durable.
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "ceph", "lustre", "beegfs", "gpfs", "9p", "ocfs2", "gfs2"}
    | {"coda", "orangefs", "pvfs2", "wekafs", "panfs", "virtiofs", "vboxsf", "prl_fs", "fuse"}
)  # fmt: skip
# FUSE programs mostly serve a network or an object store, and new ones appear every year. This one is local.
_LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs"})
_MOUNTS = Path("/proc/self/mountinfo")


@contextmanager
def explaining(path: Path) -> Generator[None]:
    """Translates operating system errors for a store at `path`."""
    try:
        yield
    except OSError as error:
        match error.errno:
            case errno.EACCES | errno.EPERM | errno.EROFS:
                raise Denied(
                    "store.denied",
                    f"{path} may not be written: {error.strerror}.",
                    hint="Run as the owner of the directory, or choose another one.",
                ) from error
            case errno.ENOSPC | errno.EDQUOT:
                raise full() from error
            case _:
                raise StorageFailed(error) from error


def own(path: Path) -> Callable[[], None]:
    """Locks the file's companion `<path>.lock` for the life of this process; returns the function that unlocks.

    A separate file, because closing any descriptor of the database would drop SQLite's locks. It is never removed: a
    second owner could then lock another file of the same name.
    """
    lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BaseException as error:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        if not isinstance(error, BlockingIOError):
            raise
        raise Conflict(
            "store.owned",
            f"The store {path} is in use by process {holder}.",
            hint="Stop that process first, or open another store.",
        ) from None
    return lambda: os.close(lock)


def suitable(path: Path) -> Path:
    """The resolved path of the file; refuses paths where a database would not be safe."""
    place = path.parent.resolve()
    if not place.is_dir():
        raise NotFound(
            "store.directory", f"The directory {place} does not exist.", hint=f"Create it: mkdir -p {place}"
        )
    real = path.resolve()
    if real.exists() and not real.is_file():
        raise Invalid("store.file", f"{real} is not a file.", hint="Name a file inside of a directory.")
    kind = network_filesystem(real, _MOUNTS.read_text("utf-8", "replace") if _MOUNTS.exists() else "")
    if kind is not None:
        raise Invalid(
            "store.network",
            f"{real} lies on a network filesystem ({kind}), where SQLite can lose data.",
            hint="Use a local disk, or PostgreSQL: postgresql://…",
        )
    with suppress(FileNotFoundError):
        links = real.stat().st_nlink
        if links > 1:
            raise Invalid(
                "store.linked",
                f"{real} has {links} names (hard links), so another owner could not be seen.",
                hint="Remove the other names, or copy the store by backup and restore.",
            )
    return real


def network_filesystem(path: Path, mounts: str) -> str | None:
    """The type of the network filesystem of a path, by the kernel's mount table; None for a local one."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4].replace("\\040", " "))
        # The later of two mounts on one point hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), right.split()[0]
    served = kind.startswith("fuse.") and kind not in _LOCAL_FUSE
    return kind if served or kind in _NETWORK else None


def sync(path: Path) -> None:
    """Makes a file's content, or a directory's list of names, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
