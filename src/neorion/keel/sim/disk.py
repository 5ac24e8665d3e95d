"""A simulated disk: files of bytes, of which a crash keeps only what was synced."""

from dataclasses import dataclass
from typing import Final

from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.sim.trace import Trace

# The duration of a sync on a good drive with occasional flushes.
_SYNC_S: Final = (0.0002, 0.005)


@dataclass(frozen=True, slots=True)
class _Write:
    data: bytes
    whole: bool

    def onto(self, content: bytes) -> bytes:
        return self.data if self.whole else content + self.data


class Disk:
    """Files whose reads see every write. A crash keeps what was synced and, by seed, some of the later writes.

    Files lose independently, so writes to two files without a sync between them may survive in either order. The first
    lost append may leave a part behind.
    """

    def __init__(self, clock: Clock, rng: Rng, trace: Trace) -> None:
        self._clock = clock
        self._rng = rng
        self._trace = trace
        self._durable: dict[str, bytes] = {}
        self._unsynced: dict[str, list[_Write]] = {}

    def read(self, file: str) -> bytes:
        """The current content, with unsynced writes; empty for a file that was never written."""
        return _applied(self._durable.get(file, b""), self._unsynced.get(file, []))

    def append(self, file: str, data: bytes) -> None:
        self._unsynced.setdefault(file, []).append(_Write(data, whole=False))

    def replace(self, file: str, data: bytes) -> None:
        """Replaces the whole content atomically: old or new but never a mixture, like a rename over the file."""
        self._unsynced.setdefault(file, []).append(_Write(data, whole=True))

    async def sync(self, file: str) -> None:
        """Makes all earlier writes to the file durable."""
        writes = len(self._unsynced.get(file, []))
        await self._clock.sleep(Duration.of(seconds=self._rng.uniform(*_SYNC_S)))
        pending = self._unsynced.get(file, [])
        self._durable[file] = _applied(self._durable.get(file, b""), pending[:writes])
        del pending[:writes]

    def crash(self) -> None:
        for file, writes in self._unsynced.items():
            kept = self._rng.randrange(0, len(writes) + 1)
            content = _applied(self._durable.get(file, b""), writes[:kept])
            if kept < len(writes):
                self._trace.add(f"disk {file} loses {len(writes) - kept} writes")
                torn = writes[kept]
                if torn.data and not torn.whole:
                    content += torn.data[: self._rng.randrange(0, len(torn.data))]
            self._durable[file] = content
        self._unsynced.clear()


def _applied(content: bytes, writes: list[_Write]) -> bytes:
    for write in writes:
        content = write.onto(content)
    return content
