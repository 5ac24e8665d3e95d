"""Blobs: functions, arguments, values, bundles. Small ones are rows beside the records that name them, large ones are files."""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable

import anyio

from neorion.iris.model import Digest
from neorion.iris.ports import BlobFiles
from neorion.iris.state import Journal
from neorion.keel.base import Invalid, NotFound
from neorion.keel.store import Store

# A row this size still rides along in a group commit; a larger one would hold the others up.
SMALL_BYTES_MAX = 64 * 1024
# Values are fetched soon after they are made, or never.
_CACHE_BYTES_MAX = 64 * 1024 * 1024


def digest_of(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


class Blobs:
    """One name space over rows and files."""

    def __init__(self, journal: Journal, store: Store, files: BlobFiles) -> None:
        self._journal = journal
        self._store = store
        self._files = files
        self._cache: OrderedDict[Digest, bytes] = OrderedDict()
        self._cached_bytes = 0
        # Held by sweeps, and by those for whom a sweep at the wrong moment would be one too many.
        self._sweeping = anyio.Lock()
        # Looked for or sent since the sweep before last.
        self._lately: set[Digest] = set()
        self._earlier: set[Digest] = set()

    async def put(self, digest: Digest, body: bytes) -> None:
        """Kept when the journal is next durable, or at once if it is large. A name that is not its content's is refused."""
        if digest_of(body) != digest:
            raise Invalid("iris.blob_hash", f"A blob does not have the hash {digest} that it was sent under.")
        self._lately.add(digest)
        if len(body) > SMALL_BYTES_MAX:
            async with self._sweeping:
                await self._files.put(digest, body)
            return
        self._journal.note("blob", digest, body)
        self._remember(digest, body)

    async def get(self, digest: Digest) -> bytes:
        if (cached := self._cache.get(digest)) is not None:
            self._cache.move_to_end(digest)
            return cached
        rows = await self._store.read(lambda tx: tx.execute("SELECT body FROM blob WHERE id = ?", (digest,)))
        if rows:
            self._remember(digest, bytes(rows[0][0]))
            return bytes(rows[0][0])
        body = await self._files.get(digest)
        if body is None:
            raise NotFound(
                "iris.no_blob", f"There is no blob {digest}.", hint="Its job may be past its retention."
            )
        return body

    async def has(self, digest: Digest) -> bool:
        self._lately.add(digest)
        try:
            async with self._sweeping:
                await self.get(digest)
        except NotFound:
            return False
        return True

    async def sweep(self, unnamed: Iterable[Digest]) -> list[Digest]:
        """Deletes blobs that no job names; returns those spared because a job that names them may be on its way."""
        recent = self._lately | self._earlier
        self._lately, self._earlier = set(), self._lately
        async with self._sweeping:
            spared = [digest for digest in unnamed if digest in recent or digest in self._lately]
            dead = [digest for digest in unnamed if digest not in spared]
            for digest in dead:
                self._journal.note("blob", digest, None)
                self._cached_bytes -= len(self._cache.pop(digest, b""))
            await self._journal.durable()
            for digest in dead:
                # Sent again meanwhile: the row is back, and so is the file.
                if digest not in self._lately:
                    await self._files.delete(digest)
        return spared

    def cached(self, digest: Digest) -> bytes | None:
        return self._cache.get(digest)

    def _remember(self, digest: Digest, body: bytes) -> None:
        if digest not in self._cache:
            self._cached_bytes += len(body)
        self._cache[digest] = body
        self._cache.move_to_end(digest)
        # What is noted but not yet written is among the newest, and those are never evicted.
        while self._cached_bytes > _CACHE_BYTES_MAX:
            _, old = self._cache.popitem(last=False)
            self._cached_bytes -= len(old)
