"""Cache of blobs on the worker's disk: fetched once, named by their hash, checked before use, limited in size."""

import errno
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio

from neorion.iris.model import AttemptId, Digest
from neorion.keel.base import Retry

Fetch = Callable[[Digest], AsyncIterator[bytes]]

# Enough for the bundles and functions of some days; the disk of a worker is far larger.
CACHE_BYTES_MAX: Final = 16 * 1024**3


class BlobCache:
    """Folder of blobs. Its files are complete, because they are written under another name and renamed.

    The least recently used blobs are deleted first. Blobs of live attempts stay, whatever their size.
    """

    def __init__(self, folder: Path, fetch: Fetch, most: int = CACHE_BYTES_MAX) -> None:
        self._folder = folder
        self._fetch = fetch
        self._most = most
        folder.mkdir(parents=True, exist_ok=True)
        for partial in folder.glob("*.part"):
            partial.unlink()
        kept = sorted((path.stat().st_mtime_ns, path) for path in folder.iterdir())
        self._sizes = OrderedDict((Digest(path.name), path.stat().st_size) for _, path in kept)
        self._bytes = sum(self._sizes.values())
        self._fetching = anyio.Lock()
        self._used_by: dict[AttemptId, set[Digest]] = {}

    def keep(self, blobs: Iterable[tuple[Digest, bytes]]) -> None:
        """Stores blobs that were part of an order."""
        for digest, body in blobs:
            if digest not in self._sizes:
                _check(digest, hashlib.sha256(body).hexdigest())
                with self._room_for(digest):
                    self._partial(digest).write_bytes(body)
                    self._add(digest)

    async def path(self, digest: Digest, attempt: AttemptId) -> Path:
        """File of a blob, which stays until `release` of the attempt."""
        self._used_by.setdefault(attempt, set()).add(digest)
        # One download at a time: attempts that start together mostly need the same blobs over the same connection.
        async with self._fetching:
            if digest not in self._sizes:
                await self._download(digest)
        self._sizes.move_to_end(digest)
        return self._folder / digest

    def release(self, attempt: AttemptId) -> None:
        """Releases the blobs of an ended attempt."""
        if self._used_by.pop(attempt, None) and self._bytes > self._most:
            self._make_room(self._most)

    async def _download(self, digest: Digest) -> None:
        found = hashlib.sha256()
        with self._room_for(digest):
            with self._partial(digest).open("wb") as file:
                async for part in self._fetch(digest):
                    file.write(part)
                    found.update(part)
            _check(digest, found.hexdigest())
            self._add(digest)

    @contextmanager
    def _room_for(self, digest: Digest) -> Generator[None]:
        """Handles a full disk: deletes unused blobs and raises Retry, so that the worker and its tasks continue."""
        try:
            yield
        except OSError as error:
            self._partial(digest).unlink(missing_ok=True)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._make_room(0)
            raise Retry(
                "iris.worker_disk",
                "There is no room for a task's blobs.",
                hint="Free space on the worker.",
            ) from error

    def _add(self, digest: Digest) -> None:
        path = self._folder / digest
        self._partial(digest).replace(path)
        self._sizes[digest] = path.stat().st_size
        self._bytes += self._sizes[digest]
        self._make_room(self._most)

    def _make_room(self, most: int) -> None:
        used = set[Digest]().union(*self._used_by.values()) if self._bytes > most else ()
        for digest in list(self._sizes):
            if self._bytes <= most:
                return
            if digest not in used:
                self._bytes -= self._sizes.pop(digest)
                (self._folder / digest).unlink(missing_ok=True)

    def _partial(self, digest: Digest) -> Path:
        return self._folder / f"{digest}.part"


def _check(digest: Digest, found: str) -> None:
    if found != digest:
        raise Retry(
            "iris.blob_transfer",
            f"The hash of blob {digest} does not match its content.",
            hint="Wait for the next try.",
        )
