"""Blobs as files of one folder: `ab/cd/abcd…`, whole and on the disk, or not there."""

import hashlib
import os
import re
from itertools import count
from pathlib import Path

from anyio.to_thread import run_sync

from neorion.iris.model import Digest
from neorion.keel.base import Invalid, Terminal

_DIGEST = re.compile(r"[0-9a-f]{64}")


class FolderBlobs:
    """The `BlobFiles` port on a folder that one controller writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._numbers = count()
        self._incoming.mkdir(parents=True, exist_ok=True)
        _sync(folder.parent)
        # What an earlier controller did not finish, nobody was told is kept.
        for partial in self._incoming.iterdir():
            partial.unlink()

    async def put(self, digest: Digest, body: bytes) -> None:
        await run_sync(self._put, self._path(digest), body)

    async def get(self, digest: Digest) -> bytes | None:
        return await run_sync(_get, self._path(digest))

    async def delete(self, digest: Digest) -> None:
        path = self._path(digest)
        await run_sync(lambda: path.unlink(missing_ok=True))

    def _path(self, digest: Digest) -> Path:
        if _DIGEST.fullmatch(digest) is None:
            raise Invalid("iris.blob_name", f"{digest[:80]!r} is not the SHA-256 of anything.")
        return self._folder / digest[:2] / digest[2:4] / digest

    def _put(self, path: Path, body: bytes) -> None:
        if not path.exists():
            partial = self._incoming / f"{path.name}-{next(self._numbers)}"
            with partial.open("xb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.replace(path)
        # Also of a file that was there: whoever renamed it may have died before its name was on the disk.
        for folder in (path.parent, path.parent.parent, self._folder):
            _sync(folder)


def _get(path: Path) -> bytes | None:
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(body).hexdigest() != path.name:
        raise Terminal(
            "iris.blob_damaged",
            f"The file of the blob {path.name} holds something else.",
            hint="Check the disk; delete the file, and submit again what needs it.",
        )
    return body


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
