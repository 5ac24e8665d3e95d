"""What every place for large blobs promises."""

import hashlib
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neorion.iris.adapters.blobs import FolderBlobs
from neorion.iris.model import Digest
from neorion.iris.ports import BlobFiles
from neorion.keel.base import Invalid

pytestmark = pytest.mark.anyio


def digest(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


@pytest.fixture(params=["folder"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> BlobFiles:
    return {"folder": FolderBlobs}[request.param](tmp_path / "blobs")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=100_000))
def test_what_is_put_is_got(files: BlobFiles, body: bytes):
    async def there_and_back() -> bytes | None:
        await files.put(digest(body), body)
        return await files.get(digest(body))

    assert anyio.run(there_and_back) == body


async def test_what_was_never_put_is_not_there(files: BlobFiles):
    assert await files.get(digest(b"never")) is None


async def test_the_same_again_is_no_error(files: BlobFiles):
    for _ in range(2):
        await files.put(digest(b"again"), b"again")
    assert await files.get(digest(b"again")) == b"again"


async def test_the_same_from_many_at_once_is_no_error(files: BlobFiles):
    body = b"x" * 1_000_000
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(files.put, digest(body), body)
    assert await files.get(digest(body)) == body


async def test_what_is_deleted_is_gone_and_may_be_deleted_again(files: BlobFiles):
    await files.put(digest(b"short"), b"short")
    for _ in range(2):
        await files.delete(digest(b"short"))
    assert await files.get(digest(b"short")) is None
    await files.put(digest(b"short"), b"short")
    assert await files.get(digest(b"short")) == b"short"


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"])
async def test_a_name_that_is_no_hash_is_refused(files: BlobFiles, name: str):
    for call in (files.put(Digest(name), b""), files.get(Digest(name)), files.delete(Digest(name))):
        with pytest.raises(Invalid) as refused:
            await call
        assert refused.value.code == "iris.blob_name"
