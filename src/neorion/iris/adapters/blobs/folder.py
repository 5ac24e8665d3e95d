"""Blobs as files of one folder: `ab/cd/abcd…`. Each is complete and on the disk, or does not exist."""

import errno
import os
import shutil
from itertools import count
from pathlib import Path, PurePath
from typing import Final

from anyio.to_thread import run_sync

from neorion.iris.adapters.blobs.validation import check_body, check_name
from neorion.iris.model import Digest
from neorion.keel.base import NoCapacity

_COPY_BYTES: Final = 4 * 1024 * 1024


class FolderBlobs:
    """The `BlobBackend` port on a folder that one controller writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._numbers = count()
        self._incoming.mkdir(parents=True, exist_ok=True)
        _sync(folder.parent)
        # An unfinished file of an earlier controller was never confirmed.
        for partial in self._incoming.iterdir():
            partial.unlink()

    async def put(self, digest: Digest, body: bytes | PurePath) -> None:
        await run_sync(self._put, self._path(digest), body)

    async def get(self, digest: Digest) -> bytes | None:
        return await run_sync(_get, self._path(digest))

    async def part(self, digest: Digest, start: int, most: int) -> tuple[bytes, int] | None:
        return await run_sync(_part, self._path(digest), start, most)

    async def delete(self, digest: Digest) -> None:
        path = self._path(digest)
        await run_sync(lambda: path.unlink(missing_ok=True))

    def _path(self, digest: Digest) -> Path:
        check_name(digest)
        return self._folder / digest[:2] / digest[2:4] / digest

    def _put(self, path: Path, body: bytes | PurePath) -> None:
        if not path.exists():
            partial = self._incoming / f"{path.name}-{next(self._numbers)}"
            try:
                _write(partial, body)
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.replace(path)
            except OSError as error:
                # The store may be on the same disk, so a partial blob must not use up its space.
                partial.unlink(missing_ok=True)
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise NoCapacity(
                    "iris.blobs_full",
                    "The controller's disk for blobs is full.",
                    hint="Free space on it, or cancel jobs that are no longer needed.",
                    scope="blobs",
                ) from error
        # Also for an existing file, because its writer may have crashed before the name was on the disk.
        for folder in (path.parent, path.parent.parent, self._folder):
            _sync(folder)


def _write(path: Path, body: bytes | PurePath) -> None:
    with path.open("xb") as file:
        if isinstance(body, bytes):
            file.write(body)
        else:
            with Path(body).open("rb") as source:
                shutil.copyfileobj(source, file, _COPY_BYTES)
        file.flush()
        os.fsync(file.fileno())


def _get(path: Path) -> bytes | None:
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return None
    check_body(Digest(path.name), body)
    return body


def _part(path: Path, start: int, most: int) -> tuple[bytes, int] | None:
    try:
        with path.open("rb") as file:
            return os.pread(file.fileno(), most, start), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
