"""Uploads of blobs in parts: each is collected in a file and stored when it is complete."""

import errno
import hashlib
from itertools import count
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync

from neorion.iris.controllers.blob_store import SMALL_BYTES_MAX, BlobStore, wrong_hash
from neorion.iris.model import Digest
from neorion.keel.base import Duration, Invalid, NoCapacity, Retry
from neorion.keel.clock import Clock

# Larger data belongs in other storage, because all users share this disk.
BLOB_BYTES_MAX: Final = 16 * 1024**3
# Simultaneous uploads; each has a file on the controller's disk.
UPLOADS_MAX: Final = 64
# A live sender sends its next part within seconds.
_IDLE_MAX: Final = Duration.of(minutes=1)
_BUSY_AFTER: Final = Duration.of(seconds=2)


class _Upload:
    def __init__(self, path: Path, now: float) -> None:
        self.path = path
        self.hash = hashlib.sha256()
        self.size = 0
        self.touched = now
        self.lock = anyio.Lock()

    def append(self, body: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(body)
        self.hash.update(body)
        self.size += len(body)


class BlobUploads:
    """Open uploads per sender. A repeated part is stored once; a gap restarts the upload."""

    def __init__(self, folder: Path, blobs: BlobStore, clock: Clock) -> None:
        self._folder = folder
        self._blobs = blobs
        self._clock = clock
        self._numbers = count()
        self._open: dict[tuple[str, Digest], _Upload] = {}
        folder.mkdir(parents=True, exist_ok=True)
        # No sender got a confirmation for an unfinished upload of an earlier controller.
        for path in folder.iterdir():
            path.unlink()

    async def take(self, sender: str, digest: Digest, offset: int, body: bytes, *, last: bool) -> None:
        key = (sender, digest)
        if last and offset == 0 and key not in self._open:
            await self._blobs.put(digest, body)
            return
        if offset > 0 and key not in self._open and await self._blobs.has(digest):
            # Another upload of the same content by this sender has finished.
            return
        upload = self._open.get(key) or self._begin(key)
        async with upload.lock:
            try:
                await self._append(upload, offset, body)
                if last:
                    await self._finish(upload, digest)
            except (Invalid, NoCapacity, OSError):
                self._drop(key)
                raise
            if last:
                self._drop(key)

    def expire(self) -> None:
        """Drops uploads that have not continued within a minute."""
        limit = self._clock.monotonic() - _IDLE_MAX.seconds
        for key, upload in list(self._open.items()):
            if upload.touched < limit and not upload.lock.locked():
                self._drop(key)

    def _begin(self, key: tuple[str, Digest]) -> _Upload:
        if len(self._open) >= UPLOADS_MAX:
            self.expire()
        if len(self._open) >= UPLOADS_MAX:
            raise Retry(
                "iris.blobs_arriving",
                f"{UPLOADS_MAX} large uploads are in progress already.",
                hint="Wait: the client retries by itself.",
                after=_BUSY_AFTER,
            )
        upload = _Upload(self._folder / str(next(self._numbers)), self._clock.monotonic())
        self._open[key] = upload
        return upload

    async def _append(self, upload: _Upload, offset: int, body: bytes) -> None:
        upload.touched = self._clock.monotonic()
        if not 0 <= offset <= upload.size:
            raise Invalid(
                "iris.blob_part",
                f"A part of a blob begins at {offset}, but {upload.size} bytes have arrived.",
                hint="Send the blob again from 0.",
            )
        fresh = body[upload.size - offset :]
        if upload.size + len(fresh) > BLOB_BYTES_MAX:
            raise Invalid(
                "iris.blob_large",
                f"A blob may have at most {BLOB_BYTES_MAX} bytes.",
                hint="Write the data to storage, and send its address.",
            )
        if fresh:
            try:
                await run_sync(upload.append, fresh)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise NoCapacity(
                    "iris.blobs_full",
                    "The controller's disk for blobs is full.",
                    hint="Free space on it, or cancel jobs that are no longer needed.",
                    scope="blobs",
                ) from error

    async def _finish(self, upload: _Upload, digest: Digest) -> None:
        if upload.hash.hexdigest() != digest:
            raise wrong_hash(digest)
        if upload.size > SMALL_BYTES_MAX:
            await self._blobs.put_file(digest, upload.path)
        else:
            await self._blobs.put(digest, upload.path.read_bytes() if upload.size else b"")

    def _drop(self, key: tuple[str, Digest]) -> None:
        if (upload := self._open.pop(key, None)) is not None:
            upload.path.unlink(missing_ok=True)
