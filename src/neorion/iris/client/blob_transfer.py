"""Blob transfer to and from the controller, in parts, with a hash check at the end.

A part may be sent again, so a restart of the controller only delays the transfer.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import JobServiceClient
from neorion.keel.base import Invalid, Retry

# A message holds at most 4 MiB, including its envelope.
PART_BYTES: Final = 2 * 1024 * 1024
# A restarted controller has lost the parts it had. More restarts than this are an error.
_ATTEMPTS_MAX: Final = 3

T = TypeVar("T")
Sent = Callable[[int], None]


class RetryingCall(Protocol):
    """Repeats a call that failed for a passing reason."""

    def __call__(self, call: Callable[[], Awaitable[T]], /) -> Awaitable[T]: ...


def _ignore_progress(size: int) -> None:
    """Does nothing."""


async def put_blob(
    calls: JobServiceClient, retrying: RetryingCall, digest: str, body: bytes, sent: Sent = _ignore_progress
) -> None:
    """Uploads a blob. `sent` is called with the size of each part."""
    for start in range(_ATTEMPTS_MAX):
        try:
            await _put_parts(calls, retrying, digest, body, sent if start == 0 else _ignore_progress)
        except Invalid as error:
            if error.code != "iris.blob_part" or start == _ATTEMPTS_MAX - 1:
                raise
        else:
            return


async def _put_parts(
    calls: JobServiceClient, retrying: RetryingCall, digest: str, body: bytes, sent: Sent
) -> None:
    view = memoryview(body)
    for offset in range(0, max(1, len(body)), PART_BYTES):
        part = bytes(view[offset : offset + PART_BYTES])
        last = offset + len(part) >= len(body)
        request = pb.PutBlobRequest(digest=digest, offset=offset, body=part, last=last)
        await retrying(lambda request=request: calls.put_blob(request))
        sent(len(part))


async def get_blob(calls: JobServiceClient, retrying: RetryingCall, digest: str) -> bytes:
    body = bytearray()
    size = 1
    while len(body) < size:
        request = pb.GetBlobRequest(digest=digest, offset=len(body))
        part = await retrying(lambda request=request: calls.get_blob(request))
        body += part.body
        size = part.size
        if not part.body:
            break
    if hashlib.sha256(body).hexdigest() != digest:
        raise Retry(
            "iris.blob_transfer",
            f"The hash of blob {digest} does not match its content.",
            hint="Fetch it again.",
        )
    return bytes(body)
