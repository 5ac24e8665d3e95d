"""A server on its way, told line by line: each step as it is done, each obstacle as it appears."""

from neorion.devservers.client import Progress
from neorion.keel.cli.kit import Output
from neorion.keel.clock import Clock

_DONE = {
    "volume": "its volume is there",
    "quota": "its quota is granted",
    "scheduled": "a node is found",
    "image": "its image is there",
    "ready": "it is ready",
}
_WIDEST = max(map(len, _DONE))


class ProgressPrinter:
    """Remembers what was told, and tells only what is new."""

    def __init__(self, out: Output, clock: Clock) -> None:
        self._out = out
        self._clock = clock
        self._began = clock.monotonic()
        self._told: set[str] = set()
        self._obstacle = ""

    def __call__(self, progress: Progress) -> None:
        took = f"{self._clock.monotonic() - self._began:.1f}s"
        for step in progress.steps:
            if step.done and step.name not in self._told:
                self._told.add(step.name)
                self._out.say(f"  {step.name.ljust(_WIDEST)}  {_DONE[step.name]} ({took})")
        if progress.obstacle and progress.obstacle != self._obstacle:
            self._out.say(f"  {'waits'.ljust(_WIDEST)}  {progress.obstacle}")
        self._obstacle = progress.obstacle
