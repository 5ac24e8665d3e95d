"""Blobs that come in parts, and blobs that nobody came for."""

import hashlib
from pathlib import Path

import anyio
import pytest

from neorion.iris.app.parts import ControllerParts
from neorion.iris.controllers import blob_upload
from neorion.iris.controllers.blob_gc import BlobGarbageCollector
from neorion.iris.model import Digest
from neorion.keel.base import Invalid, NotFound, Retry
from neorion.keel.clock import VirtualClock
from tests.iris.controllers.test_job_gc import controller, ended_job

pytestmark = pytest.mark.anyio

BODY = bytes(range(256)) * 1000
DIGEST = Digest(hashlib.sha256(BODY).hexdigest())
PART = 100_000
PARTS = [(start, BODY[start : start + PART]) for start in range(0, len(BODY), PART)]


async def test_parts_are_put_together_and_the_same_part_twice_counts_once(tmp_path: Path):
    async with controller(tmp_path) as parts:
        for start, part in [PARTS[0], PARTS[0], PARTS[1], PARTS[0], PARTS[1]]:
            await parts.uploads.take("ann", DIGEST, start, part, last=False)
        await parts.uploads.take("ann", DIGEST, *PARTS[2], last=True)
        assert await parts.blobs.get(DIGEST) == BODY
        assert list((tmp_path / "arriving").iterdir()) == []


async def test_two_transfers_of_the_same_at_once_both_succeed(tmp_path: Path):
    async with controller(tmp_path) as parts:

        async def send() -> None:
            for start, part in PARTS:
                last = start + len(part) == len(BODY)
                await parts.uploads.take("ann", DIGEST, start, part, last=last)

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(send)
        assert await parts.blobs.get(DIGEST) == BODY


async def test_a_gap_and_a_wrong_hash_leave_nothing_behind(tmp_path: Path):
    async with controller(tmp_path) as parts:
        for start in (-1, 7):
            with pytest.raises(Invalid) as gap:
                await parts.uploads.take("ann", DIGEST, start, b"x", last=False)
            assert gap.value.code == "iris.blob_part"
        await parts.uploads.take("ann", DIGEST, 0, b"x" * PART, last=False)
        with pytest.raises(Invalid) as wrong:
            await parts.uploads.take("ann", DIGEST, PART, b"y", last=True)
        assert wrong.value.code == "iris.blob_hash"
        assert list((tmp_path / "arriving").iterdir()) == []
        with pytest.raises(NotFound):
            await parts.blobs.get(DIGEST)


async def test_one_sender_does_not_disturb_another(tmp_path: Path):
    async with controller(tmp_path) as parts:
        await parts.uploads.take("mallory", DIGEST, 0, b"x" * PART, last=False)
        for start, part in PARTS:
            await parts.uploads.take("ann", DIGEST, start, part, last=start + len(part) == len(BODY))
        assert await parts.blobs.get(DIGEST) == BODY


async def test_there_is_a_limit_to_sizes_and_to_transfers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(blob_upload, "BLOB_BYTES_MAX", 150_000)
    monkeypatch.setattr(blob_upload, "UPLOADS_MAX", 2)
    async with controller(tmp_path) as parts:
        await parts.uploads.take("ann", DIGEST, *PARTS[0], last=False)
        with pytest.raises(Invalid) as large:
            await parts.uploads.take("ann", DIGEST, *PARTS[1], last=False)
        assert large.value.code == "iris.blob_large"
        for sender in ("ann", "bob"):
            await parts.uploads.take(sender, DIGEST, *PARTS[0], last=False)
        with pytest.raises(Retry) as busy:
            await parts.uploads.take("eve", DIGEST, *PARTS[0], last=False)
        assert busy.value.code == "iris.blobs_arriving"


async def test_what_nobody_goes_on_with_is_let_go(tmp_path: Path):
    now = [0.0]
    async with controller(tmp_path) as parts:
        found = blob_upload.BlobUploads(tmp_path / "spool", parts.blobs, VirtualClock(lambda: now[0]))
        await found.take("ann", DIGEST, *PARTS[0], last=False)
        found.expire()
        assert len(list((tmp_path / "spool").iterdir())) == 1
        now[0] += 2 * blob_upload._IDLE_MAX.seconds
        found.expire()
        assert list((tmp_path / "spool").iterdir()) == []


async def test_transfers_that_were_broken_off_do_not_keep_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(blob_upload, "UPLOADS_MAX", 2)
    now = [0.0]
    async with controller(tmp_path) as parts:
        found = blob_upload.BlobUploads(tmp_path / "spool", parts.blobs, VirtualClock(lambda: now[0]))
        for sender in ("ann", "bob"):
            await found.take(sender, DIGEST, *PARTS[0], last=False)
        now[0] += 2 * blob_upload._IDLE_MAX.seconds
        await found.take("eve", DIGEST, *PARTS[0], last=False)
        assert len(list((tmp_path / "spool").iterdir())) == 1


def looker(parts: ControllerParts) -> BlobGarbageCollector:
    """One of our own: the controller's looks when it likes to."""
    return BlobGarbageCollector(parts.context.cluster, parts.blobs, parts.uploads)


@pytest.mark.parametrize("size", [10, 100_000])
async def test_a_blob_that_no_job_names_goes_at_the_second_look(tmp_path: Path, size: int):
    async with controller(tmp_path) as parts:
        orphan, named = b"o" * size, b"n" * size
        digest = Digest(hashlib.sha256(orphan).hexdigest())
        await parts.blobs.put(digest, orphan)
        job = await ended_job(parts, "named", named)
        orphans = looker(parts)
        # Three times at most: what was sent lately is spared twice.
        for _ in range(4):
            await orphans.tick()
        with pytest.raises(NotFound):
            await parts.blobs.get(digest)
        assert await parts.blobs.get(Digest(hashlib.sha256(named).hexdigest())) == named
        assert job.id in parts.context.cluster.jobs


async def test_an_orphan_that_a_crash_left_is_found_after_it(tmp_path: Path):
    body = b"o" * 100_000
    digest = Digest(hashlib.sha256(body).hexdigest())
    async with controller(tmp_path) as parts:
        await parts.blobs.put(digest, body)
    async with controller(tmp_path) as parts:
        orphans = looker(parts)
        await orphans.tick()
        await orphans.tick()
        assert not await parts.blobs.has(digest)
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


async def test_an_orphan_that_is_looked_for_meanwhile_stays(tmp_path: Path):
    body = b"o" * 100_000
    digest = Digest(hashlib.sha256(body).hexdigest())
    async with controller(tmp_path) as parts:
        await parts.blobs.put(digest, body)
    async with controller(tmp_path) as parts:
        orphans = looker(parts)
        await orphans.tick()
        assert await parts.blobs.has(digest)
        await orphans.tick()
        assert await parts.blobs.get(digest) == body
