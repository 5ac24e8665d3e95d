"""Blobs that arrive in parts: each is gathered in a file, whatever its size, and kept when it is whole."""

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

# What is larger belongs into storage of its own: this disk is everybody's.
BLOB_BYTES_MAX: Final = 16 * 1024**3
# At once; each is an open transfer and a file on the controller's disk.
ARRIVALS_MAX: Final = 64
# A sender that lives sends its next part within seconds.
_IDLE_MOST: Final = Duration.of(minutes=1)
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
    """What each sender has sent so far. The same part twice is taken once; a gap begins it anew."""

    def __init__(self, folder: Path, blobs: BlobStore, clock: Clock) -> None:
        self._folder = folder
        self._blobs = blobs
        self._clock = clock
        self._numbers = count()
        self._open: dict[tuple[str, Digest], _Upload] = {}
        folder.mkdir(parents=True, exist_ok=True)
        # What an earlier controller did not finish, nobody was told is kept.
        for path in folder.iterdir():
            path.unlink()

    async def take(self, sender: str, digest: Digest, offset: int, body: bytes, *, last: bool) -> None:
        key = (sender, digest)
        if last and offset == 0 and key not in self._open:
            await self._blobs.put(digest, body)
            return
        if offset > 0 and key not in self._open and await self._blobs.has(digest):
            # The same sender's other transfer of the same content was quicker.
            return
        arrival = self._open.get(key) or self._begin(key)
        async with arrival.lock:
            try:
                await self._append(arrival, offset, body)
                if last:
                    await self._finish(arrival, digest)
            except (Invalid, NoCapacity, OSError):
                self._drop(key)
                raise
            if last:
                self._drop(key)

    def expire(self) -> None:
        """Lets go of what nobody goes on with."""
        limit = self._clock.monotonic() - _IDLE_MOST.seconds
        for key, arrival in list(self._open.items()):
            if arrival.touched < limit and not arrival.lock.locked():
                self._drop(key)

    def _begin(self, key: tuple[str, Digest]) -> _Upload:
        if len(self._open) >= ARRIVALS_MAX:
            self.expire()
        if len(self._open) >= ARRIVALS_MAX:
            raise Retry(
                "iris.blobs_arriving",
                f"{ARRIVALS_MAX} large blobs are on their way here already.",
                hint="Wait: it is tried again by itself.",
                after=_BUSY_AFTER,
            )
        arrival = _Upload(self._folder / str(next(self._numbers)), self._clock.monotonic())
        self._open[key] = arrival
        return arrival

    async def _append(self, arrival: _Upload, offset: int, body: bytes) -> None:
        arrival.touched = self._clock.monotonic()
        if not 0 <= offset <= arrival.size:
            raise Invalid(
                "iris.blob_part",
                f"A part of a blob begins at {offset}, and {arrival.size} bytes came before it.",
                hint="Send it again from 0.",
            )
        fresh = body[arrival.size - offset :]
        if arrival.size + len(fresh) > BLOB_BYTES_MAX:
            raise Invalid(
                "iris.blob_large",
                f"A blob may have {BLOB_BYTES_MAX} bytes.",
                hint="Write it to storage, and send where it is.",
            )
        if fresh:
            try:
                await run_sync(arrival.append, fresh)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise NoCapacity(
                    "iris.blobs_full",
                    "The disk where the controller gathers blobs is full.",
                    hint="Free some space there, or end jobs that are no longer needed.",
                    scope="blobs",
                ) from error

    async def _finish(self, arrival: _Upload, digest: Digest) -> None:
        if arrival.hash.hexdigest() != digest:
            raise wrong_hash(digest)
        if arrival.size > SMALL_BYTES_MAX:
            await self._blobs.put_file(digest, arrival.path)
        else:
            await self._blobs.put(digest, arrival.path.read_bytes() if arrival.size else b"")

    def _drop(self, key: tuple[str, Digest]) -> None:
        if (arrival := self._open.pop(key, None)) is not None:
            arrival.path.unlink(missing_ok=True)
