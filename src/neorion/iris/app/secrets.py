"""Secrets as files of the controller's folder: made once, and readable by its user alone."""

import os
from pathlib import Path

from neorion.keel.clock import Ids


class SecretFile:
    """The `KeptSecret` port on a file. The same after a restart: workers that outlive the controller show it again."""

    def __init__(self, path: Path, ids: Ids) -> None:
        self._path = path
        self._ids = ids
        self._value = path.read_text() if path.exists() else ""
        if not self._value:
            self.renew()

    @property
    def value(self) -> str:
        return self._value

    def renew(self) -> None:
        fresh = self._ids.secret()
        write_secret(self._path, fresh)
        self._value = fresh


def write_secret(path: Path, secret: str) -> None:
    """Appears whole, on the disk, and only its owner may read it."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
