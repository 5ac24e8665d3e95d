"""Blobs on their way to and from the controller, in parts, checked by their hash at the end."""

import hashlib
from collections.abc import Callable
from typing import Final

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_connect import JobServiceClient
from neorion.keel.base import Retry

# A message holds 4 MiB, its envelope counted in.
PART_BYTES: Final = 2 * 1024 * 1024


async def put_blob(
    calls: JobServiceClient, digest: str, body: bytes, sent: Callable[[int], None] = lambda _: None
) -> None:
    """`sent` hears of each part how large it was."""
    view = memoryview(body)
    for offset in range(0, max(1, len(body)), PART_BYTES):
        part = bytes(view[offset : offset + PART_BYTES])
        last = offset + len(part) >= len(body)
        await calls.put_blob(pb.PutBlobRequest(digest=digest, offset=offset, body=part, last=last))
        sent(len(part))


async def get_blob(calls: JobServiceClient, digest: str) -> bytes:
    body = bytearray()
    size = 1
    while len(body) < size:
        part = await calls.get_blob(pb.GetBlobRequest(digest=digest, offset=len(body)))
        body += part.body
        size = part.size
        if not part.body and len(body) < size:
            raise _damaged(digest)
    if hashlib.sha256(body).hexdigest() != digest:
        raise _damaged(digest)
    return bytes(body)


def _damaged(digest: str) -> Retry:
    return Retry("iris.blob_transfer", f"The blob {digest} arrived damaged.", hint="fetch it again")
