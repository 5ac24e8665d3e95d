"""One life of a host, as the loop sees it: whose step this is, whether it may run, and what time it believes in."""

import math
from contextvars import ContextVar
from typing import Final, Protocol

SCENARIO: Final = "scenario"


class PausedStep(Protocol):
    """A step that waits until its process may run again."""

    def cancelled(self) -> bool: ...


class Timeline:
    """How a host's monotonic clock follows the world's. It survives crashes, as a machine's clock does."""

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
        # Rounding must not wake a timer before its own clock says so: code that checks would wait for ever anew.
        while self.local(world) < local:
            world = math.nextafter(world, math.inf)
        return world

    def drift(self, rate: float, now: float) -> None:
        self._local, self._world, self.rate = self.local(now), now, rate


class Process:
    """What lives and dies together. A crashed process is one that never runs again: nothing of it unwinds."""

    __slots__ = ("alive", "held", "name", "stopped", "timeline")

    def __init__(self, name: str, timeline: Timeline) -> None:
        self.name = name
        self.timeline = timeline
        self.alive = True
        self.stopped = False
        self.held: list[PausedStep] = []


PROCESS: ContextVar[Process | None] = ContextVar("neorion_sim_process", default=None)


def here() -> str:
    """The host whose code runs now; the scenario itself runs on none."""
    process = PROCESS.get()
    return SCENARIO if process is None else process.name
