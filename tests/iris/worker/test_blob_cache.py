"""A worker's blobs: fetched once, checked, and never more than there is room for, but for those in use."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from neorion.iris.model import AttemptId, Digest
from neorion.iris.worker.blob_cache import BlobCache
from neorion.keel.base import Retry

pytestmark = pytest.mark.anyio

BODIES = [bytes([number]) * 100 for number in range(5)]
NAMES = [Digest(hashlib.sha256(body).hexdigest()) for body in BODIES]


class Source:
    """What there is to fetch, and what was fetched."""

    def __init__(self) -> None:
        self.bodies = dict(zip(NAMES, BODIES, strict=True))
        self.fetched: list[Digest] = []

    async def fetch(self, digest: Digest) -> AsyncIterator[bytes]:
        self.fetched.append(digest)
        body = self.bodies[digest]
        for start in range(0, len(body), 30):
            await anyio.lowlevel.checkpoint()
            yield body[start : start + 30]


def cached(folder: Path) -> set[Digest]:
    return {Digest(path.name) for path in folder.iterdir()}


async def test_a_blob_is_fetched_once_however_many_want_it(tmp_path: Path):
    source = Source()
    cache = BlobCache(tmp_path, source.fetch)
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(cache.path, NAMES[0], AttemptId(f"attempt-{number}"))
    assert (await cache.path(NAMES[0], AttemptId("attempt-x"))).read_bytes() == BODIES[0]
    assert source.fetched == [NAMES[0]]


async def test_the_longest_unused_go_first_and_those_in_use_stay(tmp_path: Path):
    cache = BlobCache(tmp_path, Source().fetch, most=250)
    one, two = AttemptId("attempt-1"), AttemptId("attempt-2")
    await cache.path(NAMES[0], one)
    await cache.path(NAMES[1], two)
    cache.release(two)
    await cache.path(NAMES[2], two)
    # The first is older than the second, but an attempt still uses it.
    assert cached(tmp_path) == {NAMES[0], NAMES[2]}
    await cache.path(NAMES[3], two)
    assert cached(tmp_path) == {NAMES[0], NAMES[2], NAMES[3]}
    cache.release(two)
    assert cached(tmp_path) == {NAMES[0], NAMES[3]}


async def test_a_worker_that_starts_again_finds_its_blobs_and_its_limit(tmp_path: Path):
    first = BlobCache(tmp_path, Source().fetch)
    for number in range(4):
        await first.path(NAMES[number], AttemptId("attempt-1"))
    (tmp_path / f"{NAMES[4]}.part").write_bytes(b"cut off")
    source = Source()
    second = BlobCache(tmp_path, source.fetch, most=250)
    await second.path(NAMES[3], AttemptId("attempt-2"))
    assert source.fetched == []
    await second.path(NAMES[4], AttemptId("attempt-2"))
    assert cached(tmp_path) == {NAMES[3], NAMES[4]}


async def test_what_arrives_damaged_is_not_kept(tmp_path: Path):
    source = Source()
    source.bodies[NAMES[0]] = b"damaged"
    cache = BlobCache(tmp_path, source.fetch)
    with pytest.raises(Retry) as refused:
        await cache.path(NAMES[0], AttemptId("attempt-1"))
    assert refused.value.code == "iris.blob_transfer"
    with pytest.raises(Retry):
        cache.keep([(NAMES[1], b"damaged too")])
    source.bodies[NAMES[0]] = BODIES[0]
    assert (await cache.path(NAMES[0], AttemptId("attempt-1"))).read_bytes() == BODIES[0]
