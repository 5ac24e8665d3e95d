"""Blobs as objects of a bucket: `PREFIX/ab/abcd…`, whole or not there, as object stores promise."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Final

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore

from neorion.iris.adapters.blobs.validation import check_body, check_name
from neorion.iris.model import Digest
from neorion.keel.base import Denied, Duration, Retry

_AFTER: Final = Duration.of(seconds=2)
# Of 5 MiB each, in memory while they are on their way.
_PARTS_AT_ONCE: Final = 4


class BucketBlobs:
    """The `BlobFiles` port on an object store. Large files go up in parts, several at once, by the store's own client."""

    def __init__(self, store: ObjectStore, address: str) -> None:
        self._store = store
        self._address = address

    async def put(self, digest: Digest, body: bytes | PurePath) -> None:
        key = _key(digest)
        with self._told():
            try:
                await self._store.head_async(key)
            except FileNotFoundError:
                source = body if isinstance(body, bytes) else Path(body)
                await self._store.put_async(key, source, max_concurrency=_PARTS_AT_ONCE)

    async def get(self, digest: Digest) -> bytes | None:
        key = _key(digest)
        with self._told():
            try:
                found = await self._store.get_async(key)
                body = bytes(await found.bytes_async())
            except FileNotFoundError:
                return None
        check_body(digest, body)
        return body

    async def part(self, digest: Digest, start: int, most: int) -> tuple[bytes, int] | None:
        key = _key(digest)
        with self._told():
            try:
                size = (await self._store.head_async(key))["size"]
                length = min(most, size - start)
                if length <= 0:
                    return b"", size
                return bytes(await self._store.get_range_async(key, start=start, length=length)), size
            except FileNotFoundError:
                return None

    async def delete(self, digest: Digest) -> None:
        key = _key(digest)
        with self._told():
            try:
                await self._store.delete_async(key)
            except FileNotFoundError:
                return

    @contextmanager
    def _told(self) -> Generator[None]:
        """What the store's client says, as one of our own errors."""
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise Denied(
                "iris.blobs_denied",
                f"{self._address} does not let us in: {_first_line(error)}.",
                hint="Check the controller's credentials for the bucket.",
            ) from error
        except (BaseError, FileNotFoundError) as error:
            raise Retry(
                "iris.blobs_unreachable",
                f"{self._address} does not answer: {_first_line(error)}.",
                hint="Check the bucket's name and address if it stays so: it is tried again by itself.",
                after=_AFTER,
            ) from error


def _key(digest: Digest) -> str:
    check_name(digest)
    return f"{digest[:2]}/{digest}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300].rstrip(".")
