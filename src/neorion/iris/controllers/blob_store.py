"""Blobs: functions, arguments, values, bundles. Small ones are rows beside the records that name them, large ones are files."""

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

# A row this size still rides along in a group commit; a larger one would hold the others up.
SMALL_BYTES_MAX: Final = 64 * 1024
# Values are fetched soon after they are made, or never.
_CACHE_BYTES_MAX: Final = 64 * 1024 * 1024
# Deleted together, so that they share a commit.
_SWEPT_AT_ONCE: Final = 64


def digest_of(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


# The row of a blob that is a file has no body; so has this one, which is no file.
_EMPTY: Final = digest_of(b"")


class BlobStore:
    """One name space over rows and files.

    Every file has a row, written before it and deleted after it: whatever a crash leaves behind is found among the rows.
    """

    def __init__(self, journal: Journal, store: Store, files: BlobBackend) -> None:
        self._journal = journal
        self._store = store
        self._files = files
        self._cache: OrderedDict[Digest, bytes] = OrderedDict()
        self._cached_bytes = 0
        # Held by who puts, looks for or deletes a blob: one that is being deleted must not be taken for there.
        self._keys = _BlobIndex()
        # Looked for or sent since the sweep before last.
        self._lately: set[Digest] = set()
        self._earlier: set[Digest] = set()

    async def put(self, digest: Digest, body: bytes) -> None:
        """Kept when the journal is next durable, or at once if it is large. A name that is not its content's is refused."""
        if digest_of(body) != digest:
            raise wrong_hash(digest)
        self._lately.add(digest)
        if len(body) > SMALL_BYTES_MAX:
            await self.put_file(digest, body)
            return
        self._journal.note("blob", digest, body)
        self._remember(digest, body)

    async def put_file(self, digest: Digest, body: bytes | Path) -> None:
        """A large one, in memory or in a file, whose hash was checked."""
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
        """Some of it, and how large it is. Whoever has put the parts together checks the hash."""
        body = await self._small(digest)
        if body is not None:
            return body[start : start + most], len(body)
        found = await self._files.part(digest, start, most)
        if found is None:
            raise _no_blob(digest)
        return found

    async def has(self, digest: Digest) -> bool:
        """Whether it is there, and stays for long enough that a job can come to name it."""
        self._lately.add(digest)
        async with self._keys.hold(digest):
            return await self._small(digest) is not None or await self._files.part(digest, 0, 0) is not None

    async def sweep(self, unnamed: Sequence[Digest]) -> list[Digest]:
        """Deletes blobs that no job names; returns those spared because a job that names them may be on its way."""
        recent = self._lately | self._earlier
        self._lately, self._earlier = set(), self._lately
        spared: list[Digest] = []

        async def look_at(digest: Digest) -> None:
            async with self._keys.hold(digest):
                if digest in recent or digest in self._lately:
                    spared.append(digest)
                else:
                    await self._drop(digest)

        for start in range(0, len(unnamed), _SWEPT_AT_ONCE):
            async with anyio.create_task_group() as group:
                for digest in unnamed[start : start + _SWEPT_AT_ONCE]:
                    group.start_soon(look_at, digest)
        return spared

    async def known(self) -> list[Digest]:
        """Every blob there is, and perhaps some that nearly were."""
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
        # What is noted but not yet written is among the newest, and those are never evicted.
        while self._cached_bytes > _CACHE_BYTES_MAX:
            _, old = self._cache.popitem(last=False)
            self._cached_bytes -= len(old)


class _BlobIndex:
    """A lock for each digest that somebody deals with now."""

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
        f"A blob does not have the hash {digest} that it was sent under.",
        hint="Send it under the SHA-256 of its bytes.",
    )


def _no_blob(digest: Digest) -> NotFound:
    return NotFound("iris.no_blob", f"There is no blob {digest}.", hint="Its job may be past its retention.")
