"""A durable medium in small: files of bytes, of which a crash spares only what was synced."""

from dataclasses import dataclass
from typing import Final

from neorion.keel.base import Duration
from neorion.keel.clock import Clock, Rng
from neorion.keel.sim.trace import Trace

# What a sync takes, as on a decent drive with a flush now and then.
_SYNC_S: Final = (0.0002, 0.005)


@dataclass(frozen=True, slots=True)
class _Write:
    data: bytes
    whole: bool

    def onto(self, content: bytes) -> bytes:
        return self.data if self.whole else content + self.data


class Disk:
    """Reads see every write; after a crash each file holds what was synced and, by seed, some of the writes after.

    Files lose independently, so writes to two files without a sync between them may survive in either order.
    The first append that is lost may leave a part behind.
    """

    def __init__(self, clock: Clock, rng: Rng, trace: Trace) -> None:
        self._clock = clock
        self._rng = rng
        self._trace = trace
        self._durable: dict[str, bytes] = {}
        self._unsynced: dict[str, list[_Write]] = {}

    def read(self, file: str) -> bytes:
        """What a reader sees now; a file nobody wrote is empty."""
        return _applied(self._durable.get(file, b""), self._unsynced.get(file, []))

    def append(self, file: str, data: bytes) -> None:
        self._unsynced.setdefault(file, []).append(_Write(data, whole=False))

    def replace(self, file: str, data: bytes) -> None:
        """The whole content, old or new but never a mixture, as a rename over the file gives."""
        self._unsynced.setdefault(file, []).append(_Write(data, whole=True))

    async def sync(self, file: str) -> None:
        """Returns when every write to the file that came before is durable."""
        writes = len(self._unsynced.get(file, []))
        await self._clock.sleep(Duration.of(seconds=self._rng.uniform(*_SYNC_S)))
        pending = self._unsynced.get(file, [])
        self._durable[file] = _applied(self._durable.get(file, b""), pending[:writes])
        del pending[:writes]

    def crash(self) -> None:
        for file, writes in self._unsynced.items():
            spared = self._rng.randrange(0, len(writes) + 1)
            content = _applied(self._durable.get(file, b""), writes[:spared])
            if spared < len(writes):
                self._trace.add(f"disk {file} loses {len(writes) - spared} writes")
                torn = writes[spared]
                if torn.data and not torn.whole:
                    content += torn.data[: self._rng.randrange(0, len(torn.data))]
            self._durable[file] = content
        self._unsynced.clear()


def _applied(content: bytes, writes: list[_Write]) -> bytes:
    for write in writes:
        content = write.onto(content)
    return content
