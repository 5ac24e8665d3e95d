"""Warm processes: each runs the attempts of one pool in turn."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from neorion.iris.adapters.runtimes.process.forkserver.attempt import AttemptProcess
from neorion.iris.adapters.runtimes.process.forkserver.event_loop import SelectorLoop, Timer
from neorion.iris.adapters.runtimes.process.protocol import Codec, StartRequest, frame, pool_codes

# Idle time of a process: the next chunk of a map comes at once, the next map may not.
IDLE_NS = 30_000_000_000
# An idle process reads its next attempt at once; one that does not is stopped or broken.
GIVE_S_MAX = 1.0
_READ_BYTES = 4096

Key = tuple[str, ...]


def key_of(job: StartRequest) -> Key:
    """Key of a pool: attempts share a process only if their environments are equal."""
    return (job.pool, job.bundle, str(job.memory), str(job.cpu_milli), *job.packages, "|", *job.setup)


def gpus_of(job: StartRequest) -> frozenset[str]:
    return frozenset(filter(None, dict(job.variables).get("CUDA_VISIBLE_DEVICES", "").split(",")))


@dataclass(slots=True, eq=False)
class WarmProcess:
    """One process. `attempt` is its current attempt. It is `proven` once an attempt has ended in it."""

    pid: int
    key: Key
    group: str
    channel: socket.socket
    gpus: frozenset[str] = frozenset()
    attempt: AttemptProcess | None = None
    begun: bool = False
    proven: bool = False
    codec: Codec[int] = field(default_factory=pool_codes)
    idle: Timer | None = None


class WarmPool:
    """All warm processes, and which of them are idle."""

    def __init__(self, loop: SelectorLoop, on_code: Callable[[WarmProcess, int], None]) -> None:
        """`on_code` is called with the messages of a process: -1 when its attempt runs, or its exit code."""
        self._loop = loop
        self._on_code = on_code
        self._idle: dict[Key, list[WarmProcess]] = {}

    def take(self, key: Key) -> WarmProcess | None:
        idle = self._idle.get(key)
        if not idle:
            return None
        warm = idle.pop()
        self._busy(warm)
        return warm

    def free_gpus(self, job: StartRequest) -> None:
        """Ends idle processes that use GPUs of another attempt, because they keep memory on these GPUs."""
        if not self._idle or not (needed := gpus_of(job)):
            return
        key = key_of(job)
        for warm in [one for idle in self._idle.values() for one in idle]:
            if warm.key != key and not needed.isdisjoint(warm.gpus):
                self.remove(warm)

    def add(self, warm: WarmProcess) -> None:
        warm.channel.setblocking(False)
        self._loop.watch(warm.channel.fileno(), lambda: self.read(warm))

    def assign(self, warm: WarmProcess, attempt: AttemptProcess, job: StartRequest) -> None:
        """Sends an attempt to a process. Raises OSError if the process has ended."""
        warm.channel.settimeout(GIVE_S_MAX)
        warm.channel.sendall(frame([job]))
        warm.channel.setblocking(False)
        warm.attempt, warm.begun = attempt, False

    def mark_idle(self, warm: WarmProcess) -> None:
        warm.attempt, warm.proven = None, True
        self._idle.setdefault(warm.key, []).append(warm)
        # A closed channel ends the process.
        warm.idle = self._loop.after(IDLE_NS, lambda: self.remove(warm))

    def read(self, warm: WarmProcess) -> None:
        """Reads all messages. The end of the channel means that the process has ended; `reap` gets its exit status."""
        while warm.channel.fileno() >= 0:
            try:
                data = warm.channel.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.remove(warm)
            for code in warm.codec.feed(data):
                self._on_code(warm, code)

    def remove(self, warm: WarmProcess) -> None:
        if warm.channel.fileno() >= 0:
            self._busy(warm)
            self._loop.unwatch(warm.channel.fileno())
            warm.channel.close()

    def _busy(self, warm: WarmProcess) -> None:
        idle = self._idle.get(warm.key, [])
        if warm in idle:
            idle.remove(warm)
        if not idle:
            self._idle.pop(warm.key, None)
        if warm.idle is not None:
            warm.idle.cancel()
