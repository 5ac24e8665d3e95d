"""Blobs as objects of a bucket: `PREFIX/ab/abcd…`. Object stores write objects completely or not at all."""

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
# Parts of 5 MiB each, which are in memory during the upload.
_PARTS_AT_ONCE: Final = 4


class BucketBlobs:
    """The `BlobBackend` port on an object store. Its client uploads large files in several parts at once."""

    def __init__(self, store: ObjectStore, address: str) -> None:
        self._store = store
        self._address = address

    async def put(self, digest: Digest, body: bytes | PurePath) -> None:
        key = _key(digest)
        with self._translated_errors():
            try:
                await self._store.head_async(key)
            except FileNotFoundError:
                source = body if isinstance(body, bytes) else Path(body)
                await self._store.put_async(key, source, max_concurrency=_PARTS_AT_ONCE)

    async def get(self, digest: Digest) -> bytes | None:
        key = _key(digest)
        with self._translated_errors():
            try:
                found = await self._store.get_async(key)
                body = bytes(await found.bytes_async())
            except FileNotFoundError:
                return None
        check_body(digest, body)
        return body

    async def part(self, digest: Digest, start: int, most: int) -> tuple[bytes, int] | None:
        key = _key(digest)
        with self._translated_errors():
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
        with self._translated_errors():
            try:
                await self._store.delete_async(key)
            except FileNotFoundError:
                return

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        """Translates errors of the store's client."""
        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise Denied(
                "iris.blobs_denied",
                f"{self._address} denies access: {_first_line(error)}.",
                hint="Check the controller's credentials for the bucket.",
            ) from error
        except (BaseError, FileNotFoundError) as error:
            raise Retry(
                "iris.blobs_unreachable",
                f"{self._address} does not answer: {_first_line(error)}.",
                hint="Wait for the next try, or check the bucket's name and address.",
                after=_AFTER,
            ) from error


def _key(digest: Digest) -> str:
    check_name(digest)
    return f"{digest[:2]}/{digest}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300].rstrip(".")
