"""Blob store for functions, arguments, values and bundles. Small blobs are rows in the store, large ones are files."""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from neorion.iris.model import Digest
from neorion.iris.ports import BlobBackend
from neorion.iris.state import Journal
from neorion.keel.base import Invalid, NotFound
from neorion.keel.store import Store

# Small enough for a group commit; a larger row would delay the other commits.
SMALL_BYTES_MAX: Final = 64 * 1024
# Most values are fetched soon after they are made.
_CACHE_BYTES_MAX: Final = 64 * 1024 * 1024
# Deleted together, so that they share a commit.
_SWEEP_BATCH: Final = 64


def digest_of(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


# The row of a blob in a file has no body, and neither has the row of the empty blob.
_EMPTY: Final = digest_of(b"")


class BlobStore:
    """Store with one namespace over rows and files.

    Every file has a row that is written before it and deleted after it, so that the rows list all files even after a crash.
    """

    def __init__(self, journal: Journal, store: Store, files: BlobBackend) -> None:
        self._journal = journal
        self._store = store
        self._files = files
        self._cache: OrderedDict[Digest, bytes] = OrderedDict()
        self._cached_bytes = 0
        # Locks for put, lookup and delete, so that a blob that is being deleted is not reported as present.
        self._keys = _DigestLocks()
        # Blobs that were looked up or sent since the sweep before last.
        self._lately: set[Digest] = set()
        self._earlier: set[Digest] = set()

    async def put(self, digest: Digest, body: bytes) -> None:
        """Stores a blob: with the next commit, or at once if it is large. A wrong hash is refused."""
        if digest_of(body) != digest:
            raise wrong_hash(digest)
        self._lately.add(digest)
        if len(body) > SMALL_BYTES_MAX:
            await self.put_file(digest, body)
            return
        self._journal.note("blob", digest, body)
        self._remember(digest, body)

    async def put_file(self, digest: Digest, body: bytes | Path) -> None:
        """Stores a large blob from memory or a file. The hash was checked before."""
        self._lately.add(digest)
        async with self._keys.hold(digest):
            self._journal.note("blob", digest, b"")
            await self._journal.wait_durable()
            await self._files.put(digest, body)

    async def get(self, digest: Digest) -> bytes:
        body = await self._small(digest)
        if body is None:
            body = await self._files.get(digest)
        if body is None:
            raise _no_blob(digest)
        return body

    async def part(self, digest: Digest, start: int, most: int) -> tuple[bytes, int]:
        """Part of a blob, and the size of the blob. The reader of all parts checks the hash."""
        body = await self._small(digest)
        if body is not None:
            return body[start : start + most], len(body)
        found = await self._files.part(digest, start, most)
        if found is None:
            raise _no_blob(digest)
        return found

    async def has(self, digest: Digest) -> bool:
        """True if the blob exists. It is then kept long enough for a job to refer to it."""
        self._lately.add(digest)
        async with self._keys.hold(digest):
            return await self._small(digest) is not None or await self._files.part(digest, 0, 0) is not None

    async def sweep(self, unnamed: Sequence[Digest]) -> list[Digest]:
        """Deletes blobs that no job refers to. Returns those kept because a job that refers to them may be arriving."""
        recent = self._lately | self._earlier
        self._lately, self._earlier = set(), self._lately
        spared: list[Digest] = []

        async def delete_unless_recent(digest: Digest) -> None:
            async with self._keys.hold(digest):
                if digest in recent or digest in self._lately:
                    spared.append(digest)
                else:
                    await self._drop(digest)

        for start in range(0, len(unnamed), _SWEEP_BATCH):
            async with anyio.create_task_group() as group:
                for digest in unnamed[start : start + _SWEEP_BATCH]:
                    group.start_soon(delete_unless_recent, digest)
        return spared

    async def known(self) -> list[Digest]:
        """Digests of all blobs, including those whose upload did not finish."""
        rows = await self._store.read(lambda tx: tx.execute("SELECT id FROM blob"))
        return [Digest(row[0]) for row in rows]

    def cached(self, digest: Digest) -> bytes | None:
        return self._cache.get(digest)

    async def _drop(self, digest: Digest) -> None:
        if await self._small(digest) is None:
            await self._files.delete(digest)
        self._journal.note("blob", digest, None)
        self._cached_bytes -= len(self._cache.pop(digest, b""))
        await self._journal.wait_durable()

    async def _small(self, digest: Digest) -> bytes | None:
        if (cached := self._cache.get(digest)) is not None:
            self._cache.move_to_end(digest)
            return cached
        rows = await self._store.read(lambda tx: tx.execute("SELECT body FROM blob WHERE id = ?", (digest,)))
        if not rows or not (rows[0][0] or digest == _EMPTY):
            return None
        body = bytes(rows[0][0])
        self._remember(digest, body)
        return body

    def _remember(self, digest: Digest, body: bytes) -> None:
        if digest not in self._cache:
            self._cached_bytes += len(body)
        self._cache[digest] = body
        self._cache.move_to_end(digest)
        # Blobs that are noted but not yet written are among the newest, which are never evicted.
        while self._cached_bytes > _CACHE_BYTES_MAX:
            _, old = self._cache.popitem(last=False)
            self._cached_bytes -= len(old)


class _DigestLocks:
    """Locks per digest, which exist only while they are in use."""

    def __init__(self) -> None:
        self._locks: dict[Digest, tuple[anyio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, digest: Digest) -> AsyncGenerator[None]:
        lock, holders = self._locks.get(digest, (anyio.Lock(), 0))
        self._locks[digest] = lock, holders + 1
        try:
            async with lock:
                yield
        finally:
            holders = self._locks[digest][1] - 1
            if holders:
                self._locks[digest] = lock, holders
            else:
                del self._locks[digest]


def wrong_hash(digest: Digest) -> Invalid:
    return Invalid(
        "iris.blob_hash",
        f"The content of a blob does not match its hash {digest}.",
        hint="Send it under the SHA-256 of its bytes.",
    )


def _no_blob(digest: Digest) -> NotFound:
    return NotFound(
        "iris.no_blob",
        f"The blob {digest} does not exist.",
        hint="Check that its job is not past its retention.",
    )
