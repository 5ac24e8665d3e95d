"""Blob transfer between a worker and its controller in parts, so that blobs of any size fit."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync

from neorion.iris.model import Digest
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import JobServiceClient

# A message holds at most 4 MiB: one part of a blob and its envelope.
PART_BYTES: Final = 2 * 1024 * 1024


async def digest_of(path: Path) -> Digest:
    return Digest(await run_sync(_hash, path))


async def send(jobs: JobServiceClient, digest: Digest, path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        for offset in range(0, max(1, size), PART_BYTES):
            body = file.read(PART_BYTES)
            last = offset + len(body) >= size
            await jobs.put_blob(pb.PutBlobRequest(digest=digest, offset=offset, body=body, last=last))


async def fetch(jobs: JobServiceClient, digest: Digest) -> AsyncIterator[bytes]:
    have, size = 0, 1
    while have < size:
        part = await jobs.get_blob(pb.GetBlobRequest(digest=digest, offset=have))
        have, size = have + len(part.body), part.size
        if not part.body:
            # The blob became shorter meanwhile, which the check of its hash detects.
            return
        yield part.body


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
