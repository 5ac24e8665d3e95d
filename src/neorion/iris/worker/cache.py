"""Blobs on the worker's disk: fetched once, named by their hash, checked before they are used."""

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from neorion.iris.model import Digest
from neorion.keel.base import Retry

Fetch = Callable[[Digest], Awaitable[bytes]]


class BlobCache:
    """A folder of blobs. What is there is whole: files appear by renaming."""

    def __init__(self, folder: Path, fetch: Fetch) -> None:
        self._folder = folder
        self._fetch = fetch
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, blobs: Iterable[tuple[Digest, bytes]]) -> None:
        for digest, body in blobs:
            self._write(digest, body)

    async def path(self, digest: Digest) -> Path:
        path = self._folder / digest
        if not path.exists():
            self._write(digest, await self._fetch(digest))
        return path

    def _write(self, digest: Digest, body: bytes) -> None:
        path = self._folder / digest
        if path.exists():
            return
        if hashlib.sha256(body).hexdigest() != digest:
            raise Retry(
                "iris.blob_transfer", f"The blob {digest} arrived damaged.", hint="It is fetched again."
            )
        partial = path.with_suffix(".part")
        partial.write_bytes(body)
        partial.replace(path)
