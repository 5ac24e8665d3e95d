"""Keys that authenticate this worker's reports, one per attempt, kept over restarts of the worker."""

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from neorion.iris.model import AttemptId
from neorion.keel.telemetry import logger

log = logger(__name__)

# Lines of settled attempts in the file before it is rewritten.
_DEAD_MAX: Final = 4096


class ReportKeys:
    """Keys by attempt. The file has a line for each; only its owner may read it.

    A torn last line after a power failure belongs to an attempt that ended with the machine.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys: dict[AttemptId, str] = {}
        self._dead = 0
        self._file = -1

    def __enter__(self) -> Self:
        text = self._path.read_text() if self._path.exists() else ""
        lines = (line.partition(" ") for line in text.splitlines())
        self._keys = {AttemptId(attempt): key for attempt, _, key in lines}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def get(self, attempt: AttemptId) -> str:
        """Key of an attempt, or "" if it is unknown."""
        return self._keys.get(attempt, "")

    def __contains__(self, attempt: object) -> bool:
        return attempt in self._keys

    def put(self, attempt: AttemptId, key: str) -> None:
        if attempt not in self._keys:
            self._keys[attempt] = key
            self._append(f"{attempt} {key}\n")

    def forget(self, attempt: AttemptId) -> None:
        if self._keys.pop(attempt, None) is not None:
            self._dead += 1
            if self._dead > _DEAD_MAX and self._dead > len(self._keys):
                self._rewrite()

    def keep_only(self, attempts: Iterable[AttemptId]) -> None:
        """Drops the keys of all other attempts."""
        self._keys = {one: self._keys[one] for one in attempts if one in self._keys}
        self._rewrite()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _append(self, line: str) -> None:
        try:
            if self._file < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
            os.write(self._file, line.encode())
        except OSError as error:
            # The key stays in memory. A restarted worker without the file joins as a new one.
            log.warning("the key of an attempt was not written", why=error.strerror)

    def _rewrite(self) -> None:
        """Replaces the file by one with only the live keys."""
        self._dead = 0
        self._close()
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the file of keys was not renewed", why=error.strerror)
        if self._keys:
            self._append("".join(f"{attempt} {key}\n" for attempt, key in self._keys.items()))
