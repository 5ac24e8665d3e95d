"""Checks of all blob backends: a name must be a hash, and a body must match it."""

import hashlib
import re
from typing import Final

from neorion.iris.model import Digest
from neorion.keel.base import Invalid, Terminal

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def check_name(digest: Digest) -> None:
    if _DIGEST.fullmatch(digest) is None:
        raise Invalid(
            "iris.blob_name",
            f"{digest[:80]!r} is not a valid SHA-256.",
            hint="Name a blob by the SHA-256 of its bytes, in 64 hexadecimal digits.",
        )


def check_body(digest: Digest, body: bytes) -> None:
    if hashlib.sha256(body).hexdigest() != digest:
        raise Terminal(
            "iris.blob_damaged",
            f"The stored content of blob {digest} does not match its hash.",
            hint="Check the disk or the bucket, delete the blob there, and submit its jobs again.",
        )
