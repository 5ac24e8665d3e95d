"""Secrets as files: generated once, never empty, durable, and readable by their owner alone."""

import os
from pathlib import Path
from typing import Final

from neorion.keel.clock import Ids

_DIGEST: Final = "sha256:"


class SecretFile:
    """A secret that stays the same after a restart. A file without content counts as none and is generated again.

    `prefix` comes before the secret in the file and is not part of it. It is the digest of a server's certificate, by
    which readers of the file recognise the server.
    """

    def __init__(self, path: Path, ids: Ids, prefix: str = "") -> None:
        self._path = path
        self._ids = ids
        self._prefix = f"{prefix}:" if prefix else ""
        kept = path.read_text().strip() if path.exists() else ""
        # Generated secrets have no colon.
        self._value = kept.rpartition(":")[2] if kept.startswith(_DIGEST) else kept
        if not self._value:
            self.renew()
        elif kept != self.text:
            write_secret(path, self.text)

    @property
    def value(self) -> str:
        return self._value

    @property
    def text(self) -> str:
        """The content of the file."""
        return self._prefix + self._value

    def renew(self) -> None:
        fresh = self._ids.secret()
        write_secret(self._path, self._prefix + fresh)
        self._value = fresh


def write_secret(path: Path, secret: str) -> None:
    """Replaces the file at once. After a power cut it holds the old secret or the new one, and is never empty."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
