"""Where blobs may be kept, and what is said when that place cannot be used."""

import hashlib
import sys
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from neorion.iris.adapters.blobs import FolderBlobs, open_blobs
from neorion.iris.adapters.blobs.bucket import BucketBlobs
from neorion.iris.model import Digest
from neorion.keel.base import Denied, Invalid, Retry, Terminal
from tests.bucket import BUCKET, s3
from tests.gcs import gcs, stranger

BODY = b"content"
DIGEST = Digest(hashlib.sha256(BODY).hexdigest())


@pytest.mark.parametrize("form", ["{0}/here", "file://{0}/here"])
@pytest.mark.anyio
async def test_a_folder_is_named_by_its_path_or_its_address(tmp_path: Path, form: str):
    files = open_blobs(form.format(tmp_path), tmp_path / "default")
    await files.put(DIGEST, BODY)
    assert await FolderBlobs(tmp_path / "here").get(DIGEST) == BODY
    assert not (tmp_path / "default").exists()


@pytest.mark.anyio
async def test_nothing_said_means_the_default(tmp_path: Path):
    await open_blobs("", tmp_path / "default").put(DIGEST, BODY)
    assert await FolderBlobs(tmp_path / "default").get(DIGEST) == BODY


@pytest.mark.parametrize(
    ("prefix", "sentence", "hint"),
    [
        (
            "s4://b",
            "s4:// is not a valid scheme for blobs.",
            "Name a folder, or an address with file://, s3:// or gs://.",
        ),
        ("s3://", "s3:// names no bucket.", "Write s3://BUCKET/PATH."),
        (
            "file://host/x",
            "file://host/x is not on this machine.",
            "Write three slashes, as in file:///folder.",
        ),
    ],
)
def test_a_wrong_place_is_refused_with_what_was_meant(tmp_path: Path, prefix: str, sentence: str, hint: str):
    with pytest.raises(Invalid) as refused:
        open_blobs(prefix, tmp_path)
    error = refused.value
    assert (error.code, error.sentence, error.hint) == ("iris.bundle_prefix", sentence, hint)


def test_without_the_extra_a_bucket_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(Invalid) as refused:
        open_blobs("s3://bucket/x", tmp_path)
    assert refused.value.hint == "Run: pip install 'neorion[objects]'."


@pytest.mark.anyio
async def test_an_object_that_is_not_what_its_name_says_is_never_given_out():
    store = MemoryStore()
    await store.put_async(f"{DIGEST[:2]}/{DIGEST}", b"something else")
    with pytest.raises(Terminal) as refused:
        await BucketBlobs(store, "memory").get(DIGEST)
    assert refused.value.code == "iris.blob_damaged"


@pytest.mark.anyio
async def test_a_bucket_that_does_not_know_us_says_what_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with gcs(tmp_path) as known:
        for name, value in stranger(tmp_path, known).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Denied) as refused:
            await open_blobs(f"gs://{BUCKET}/x", tmp_path).put(DIGEST, BODY)
    assert refused.value.code == "iris.blobs_denied"
    assert refused.value.sentence.startswith("gs://blobs/x denies access: ")
    assert refused.value.hint == "Check the controller's credentials for the bucket."


@pytest.mark.anyio
async def test_a_bucket_that_nobody_serves_is_worth_another_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with s3() as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        files = open_blobs("s3://no-such-bucket/x", tmp_path)
        assert await files.part(DIGEST, 0, 1) is None
        with pytest.raises(Retry) as refused:
            await files.put(DIGEST, BODY)
        assert refused.value.code == "iris.blobs_unreachable"
        assert await open_blobs(f"s3://{BUCKET}/x", tmp_path).get(DIGEST) is None
