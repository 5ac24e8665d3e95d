"""What every place for large blobs promises."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from neorion.iris.adapters.blobs import open_blobs
from neorion.iris.adapters.blobs.bucket import BucketBlobs
from neorion.iris.model import Digest
from neorion.iris.ports import BlobBackend
from neorion.keel.base import Invalid
from tests import gcs
from tests.bucket import BUCKET, s3

pytestmark = pytest.mark.anyio


def digest(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


@pytest.fixture(scope="session")
def bucket() -> Iterator[dict[str, str]]:
    with s3() as environment:
        yield environment


@pytest.fixture(scope="session")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with gcs.gcs(tmp_path_factory.mktemp("google")) as environment:
        yield environment


@pytest.fixture(params=["folder", "memory", "s3", "gs"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobBackend:
    match request.param:
        case "folder":
            return open_blobs(f"file://{tmp_path}/blobs", tmp_path)
        case "memory":
            return BucketBlobs(MemoryStore(), "memory")
        case place:
            found = request.getfixturevalue("bucket" if place == "s3" else "google")
            for name, value in found.items():
                monkeypatch.setenv(name, value)
            return open_blobs(f"{place}://{BUCKET}/{tmp_path.name}", tmp_path)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=100_000))
def test_what_is_put_is_got(files: BlobBackend, body: bytes):
    async def there_and_back() -> bytes | None:
        await files.put(digest(body), body)
        return await files.get(digest(body))

    assert anyio.run(there_and_back) == body


async def test_what_was_never_put_is_not_there(files: BlobBackend):
    assert await files.get(digest(b"never")) is None


async def test_the_same_again_is_no_error(files: BlobBackend):
    for _ in range(2):
        await files.put(digest(b"again"), b"again")
    assert await files.get(digest(b"again")) == b"again"


async def test_the_same_from_many_at_once_is_no_error(files: BlobBackend):
    body = b"x" * 1_000_000
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(files.put, digest(body), body)
    assert await files.get(digest(body)) == body


async def test_what_is_deleted_is_gone_and_may_be_deleted_again(files: BlobBackend):
    await files.put(digest(b"short"), b"short")
    for _ in range(2):
        await files.delete(digest(b"short"))
    assert await files.get(digest(b"short")) is None
    await files.put(digest(b"short"), b"short")
    assert await files.get(digest(b"short")) == b"short"


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"])
async def test_a_name_that_is_no_hash_is_refused(files: BlobBackend, name: str):
    for call in (files.put(Digest(name), b""), files.get(Digest(name)), files.delete(Digest(name))):
        with pytest.raises(Invalid) as refused:
            await call
        assert refused.value.code == "iris.blob_name"


async def test_a_file_is_taken_whatever_its_size(files: BlobBackend, tmp_path: Path):
    # More than one part of a multipart upload has.
    body = bytes(range(256)) * 50_000
    source = tmp_path / "source"
    source.write_bytes(body)
    await files.put(digest(body), source)
    source.unlink()
    assert await files.get(digest(body)) == body


async def test_parts_are_parts_of_the_whole(files: BlobBackend):
    body = bytes(range(256))
    await files.put(digest(body), body)
    wanted = [(0, 10), (250, 10), (256, 10), (1000, 10), (0, 0), (3, 1000)]
    for start, most in wanted:
        assert await files.part(digest(body), start, most) == (body[start : start + most], 256)
    assert await files.part(digest(b"never"), 0, 1) is None
