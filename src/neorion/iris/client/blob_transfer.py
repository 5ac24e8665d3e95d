"""Blobs on their way to and from the controller, in parts, checked by their hash at the end.

A part may be sent again, so a controller that starts anew costs some time and nothing else.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import JobServiceClient
from neorion.keel.base import Invalid, Retry

# A message holds 4 MiB, its envelope counted in.
PART_BYTES: Final = 2 * 1024 * 1024
# A controller that starts anew has forgotten the parts it had; one that does so more often is not well.
_STARTS_MOST: Final = 3

T = TypeVar("T")
Sent = Callable[[int], None]


class RetryingCall(Protocol):
    """Makes a call again while there is hope."""

    def __call__(self, call: Callable[[], Awaitable[T]], /) -> Awaitable[T]: ...


def _unheard(size: int) -> None:
    """Nobody listens."""


async def put_blob(
    calls: JobServiceClient, steady: RetryingCall, digest: str, body: bytes, sent: Sent = _unheard
) -> None:
    """`sent` hears of each part how large it was."""
    for start in range(_STARTS_MOST):
        try:
            await _put_parts(calls, steady, digest, body, sent if start == 0 else _unheard)
        except Invalid as error:
            if error.code != "iris.blob_part" or start == _STARTS_MOST - 1:
                raise
        else:
            return


async def _put_parts(
    calls: JobServiceClient, steady: RetryingCall, digest: str, body: bytes, sent: Sent
) -> None:
    view = memoryview(body)
    for offset in range(0, max(1, len(body)), PART_BYTES):
        part = bytes(view[offset : offset + PART_BYTES])
        last = offset + len(part) >= len(body)
        request = pb.PutBlobRequest(digest=digest, offset=offset, body=part, last=last)
        await steady(lambda request=request: calls.put_blob(request))
        sent(len(part))


async def get_blob(calls: JobServiceClient, steady: RetryingCall, digest: str) -> bytes:
    body = bytearray()
    size = 1
    while len(body) < size:
        request = pb.GetBlobRequest(digest=digest, offset=len(body))
        part = await steady(lambda request=request: calls.get_blob(request))
        body += part.body
        size = part.size
        if not part.body:
            break
    if hashlib.sha256(body).hexdigest() != digest:
        raise Retry("iris.blob_transfer", f"The blob {digest} arrived damaged.", hint="Fetch it again.")
    return bytes(body)
