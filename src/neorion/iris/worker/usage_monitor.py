"""Monitor of the resource usage of running attempts."""

from collections.abc import Mapping

from neorion.iris.model import AttemptId, wire
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.usage import Usage
from neorion.iris.ports import AttemptExit, AttemptUsage, Runtime
from neorion.keel.base import Duration
from neorion.keel.clock import Clock

EVERY = Duration.of(seconds=5)
# A measurement reads every process of the machine and may take this fraction of the time.
OVERHEAD_SHARE = 100


class UsageMonitor:
    """Keeper of the last measurement, and of the peak memory of each attempt."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime = runtime
        self._clock = clock
        self._at = 0.0
        self._stats: Mapping[AttemptId, AttemptUsage] = {}
        self._peaks: dict[AttemptId, int] = {}
        self._unsent: pb.Look | None = None

    async def run(self) -> None:
        wait = EVERY
        while True:
            await self._clock.sleep(wait)
            began = self._clock.monotonic()
            stats = await self._runtime.stats()
            wait = max(EVERY, Duration.of(seconds=self._clock.monotonic() - began) * OVERHEAD_SHARE)
            self._take(stats, began)

    def take_unsent(self) -> pb.Look | None:
        """Returns the last measurement, once."""
        usage, self._unsent = self._unsent, None
        return usage

    def final_usage(self, attempt: AttemptId, end: AttemptExit) -> pb.Usage | None:
        peak = max(end.memory_bytes, self._peaks.get(attempt, 0))
        return wire.usage_message(Usage(cpu_ms=round(end.cpu_seconds * 1000), memory_peak=peak))

    def forget(self, attempt: AttemptId) -> None:
        self._peaks.pop(attempt, None)

    def _take(self, stats: Mapping[AttemptId, AttemptUsage], at: float) -> None:
        before, passed = self._stats, at - self._at
        self._stats, self._at = stats, at
        if not stats and not before:
            return
        for attempt, seen in stats.items():
            self._peaks[attempt] = max(seen.memory_bytes, self._peaks.get(attempt, 0))
        self._unsent = pb.Look(
            usage={
                str(attempt): pb.Usage(
                    cpu_milli=_rate(before.get(attempt), seen, passed),
                    memory_bytes=seen.memory_bytes,
                    memory_peak_bytes=self._peaks[attempt],
                    processes=seen.processes,
                )
                for attempt, seen in stats.items()
            }
        )


def _rate(before: AttemptUsage | None, now: AttemptUsage, passed: float) -> int:
    """Usage in thousandths of a core; 0 at the first measurement. A child's time is lost if its parent does not reap it."""
    if before is None or passed <= 0:
        return 0
    return max(0, round((now.cpu_seconds - before.cpu_seconds) / passed * 1000))
