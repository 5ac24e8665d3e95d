"""The worker's lease, kept on disk: the next life of the worker goes on with what is left of it."""

from pathlib import Path
from typing import Final

from neorion.keel.base import Duration
from neorion.keel.clock import Clock

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class WorkerLease:
    """`until` is by the clock of the machine's present life; before the first lease it has long been over."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._boot = BOOT_ID.read_text().strip()
        self.until = self._load()

    @property
    def left(self) -> Duration:
        return Duration(round(max(0.0, self.until - self._clock.monotonic()) * 1e9))

    def renew(self, life: Duration) -> None:
        self.until = self._clock.monotonic() + life.seconds

    def save(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(f"{self._boot} {self.until}")
        fresh.replace(self._path)

    def _load(self) -> float:
        words = self._path.read_text().split() if self._path.exists() else []
        return float(words[1]) if len(words) == 2 and words[0] == self._boot else float("-inf")
