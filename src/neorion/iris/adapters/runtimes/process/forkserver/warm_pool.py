"""Warm processes: each runs the attempts of one pool one after the other."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from neorion.iris.adapters.runtimes.process.forkserver.attempt import AttemptProcess
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import SelectorLoop, Timer
from neorion.iris.adapters.runtimes.process.protocol import Codec, StartRequest, frame, words

# How long a process waits for the next attempt of its pool: a map's next chunk comes at once, the next map may not.
IDLE_NS = 30_000_000_000
# A process that waits for an attempt reads it at once; one that does not is stopped or broken.
GIVE_S_MAX = 1.0
_READ_BYTES = 4096

Key = tuple[str, ...]


def key_of(job: StartRequest) -> Key:
    """Attempts share a process only if they would have found the same around them."""
    return (job.pool, job.bundle, str(job.memory), str(job.cpu_milli), *job.packages, "|", *job.setup)


def gpus_of(job: StartRequest) -> frozenset[str]:
    return frozenset(filter(None, dict(job.variables).get("CUDA_VISIBLE_DEVICES", "").split(",")))


@dataclass(slots=True, eq=False)
class WarmProcess:
    """One process; `attempt` is what it was given last. It is `proven` once an attempt has ended in it."""

    pid: int
    key: Key
    group: str
    line: socket.socket
    gpus: frozenset[str] = frozenset()
    attempt: AttemptProcess | None = None
    begun: bool = False
    proven: bool = False
    codec: Codec[int] = field(default_factory=words)
    idle: Timer | None = None


class WarmPool:
    """All warm processes, and which of them have nothing to do."""

    def __init__(self, loop: SelectorLoop, told: Callable[[WarmProcess, int], None]) -> None:
        """`told` hears what a process says of its attempt: that it runs, or its exit code."""
        self._loop = loop
        self._told = told
        self._idle: dict[Key, list[WarmProcess]] = {}

    def take(self, key: Key) -> WarmProcess | None:
        idle = self._idle.get(key)
        if not idle:
            return None
        warm = idle.pop()
        self._busy(warm)
        return warm

    def make_way(self, job: StartRequest) -> None:
        """An idle process keeps the memory of the GPUs it has opened: it ends when they are another's."""
        if not self._idle or not (wanted := gpus_of(job)):
            return
        key = key_of(job)
        for warm in [one for idle in self._idle.values() for one in idle]:
            if warm.key != key and not wanted.isdisjoint(warm.gpus):
                self.remove(warm)

    def add(self, warm: WarmProcess) -> None:
        warm.line.setblocking(False)
        self._loop.watch(warm.line.fileno(), lambda: self.read(warm))

    def give(self, warm: WarmProcess, attempt: AttemptProcess, job: StartRequest) -> None:
        """OSError where the process is not there to take it."""
        warm.line.settimeout(GIVE_S_MAX)
        warm.line.sendall(frame([job]))
        warm.line.setblocking(False)
        warm.attempt, warm.begun = attempt, False

    def rest(self, warm: WarmProcess) -> None:
        warm.attempt, warm.proven = None, True
        self._idle.setdefault(warm.key, []).append(warm)
        # A closed line tells the process to end.
        warm.idle = self._loop.after(IDLE_NS, lambda: self.remove(warm))

    def read(self, warm: WarmProcess) -> None:
        """Everything the process has said; at the end of the line it is gone, and its exit status says the rest."""
        while warm.line.fileno() >= 0:
            try:
                data = warm.line.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.remove(warm)
            for word in warm.codec.feed(data):
                self._told(warm, word)

    def remove(self, warm: WarmProcess) -> None:
        if warm.line.fileno() >= 0:
            self._busy(warm)
            self._loop.unwatch(warm.line.fileno())
            warm.line.close()

    def _busy(self, warm: WarmProcess) -> None:
        idle = self._idle.get(warm.key, [])
        if warm in idle:
            idle.remove(warm)
        if not idle:
            self._idle.pop(warm.key, None)
        if warm.idle is not None:
            warm.idle.cancel()
