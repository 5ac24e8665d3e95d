"""One run of a host's program: identifies its steps, whether they may run, and its local time."""

import math
from contextvars import ContextVar
from typing import Final, Protocol

SCENARIO: Final = "scenario"


class PausedStep(Protocol):
    """A step that waits until its process may run again."""

    def cancelled(self) -> bool: ...


class Timeline:
    """Maps the world's time to a host's monotonic clock. It survives crashes, as a machine's clock does."""

    __slots__ = ("_local", "_world", "rate")

    def __init__(self) -> None:
        self.rate = 1.0
        self._world = 0.0
        self._local = 0.0

    def local(self, world: float) -> float:
        return self._local + (world - self._world) * self.rate

    def world(self, local: float) -> float:
        """The first world time at which the local clock shows at least `local`."""
        world = self._world + (local - self._local) / self.rate
        # Rounding must not wake a timer before its own clock reaches it: code that checks the time would wait again,
        # endlessly.
        while self.local(world) < local:
            world = math.nextafter(world, math.inf)
        return world

    def drift(self, rate: float, now: float) -> None:
        self._local, self._world, self.rate = self.local(now), now, rate


class Process:
    """The tasks of one program run. Nothing of a crashed process runs again or unwinds."""

    __slots__ = ("alive", "name", "paused_steps", "stopped", "timeline")

    def __init__(self, name: str, timeline: Timeline) -> None:
        self.name = name
        self.timeline = timeline
        self.alive = True
        self.stopped = False
        self.paused_steps: list[PausedStep] = []


PROCESS: ContextVar[Process | None] = ContextVar("neorion_sim_process", default=None)


def here() -> str:
    """The host whose code runs now; the scenario itself runs on none."""
    process = PROCESS.get()
    return SCENARIO if process is None else process.name
