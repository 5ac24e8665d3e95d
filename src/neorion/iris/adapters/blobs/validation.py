"""What every place for blobs checks: that a name is a hash, and that a body is what its name says."""

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
            f"{digest[:80]!r} is not the SHA-256 of anything.",
            hint="Name a blob by the SHA-256 of its bytes, in 64 hexadecimal digits.",
        )


def check_body(digest: Digest, body: bytes) -> None:
    if hashlib.sha256(body).hexdigest() != digest:
        raise Terminal(
            "iris.blob_damaged",
            f"Under the name of the blob {digest} stands something else.",
            hint="Check the disk or the bucket; delete it there, and submit again what needs it.",
        )
