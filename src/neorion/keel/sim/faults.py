"""The plan for fault points: which fault occurs where, when, and how often."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from neorion.keel.base import Duration, Invalid
from neorion.keel.clock import Rng
from neorion.keel.sim.host import Host
from neorion.keel.sim.process import SCENARIO, here

if TYPE_CHECKING:
    from neorion.keel.sim.world import World


@dataclass(frozen=True, slots=True)
class Crash:
    """Crashes the host and, if `down` is set, starts it again after that time."""

    down: Duration | None = None


@dataclass(frozen=True, slots=True)
class Delay:
    """Delays the task by up to `most`."""

    most: Duration


@dataclass(frozen=True, slots=True)
class Fail:
    """Raises the result of `error()` at the point."""

    error: Callable[[], Exception]


Effect = Crash | Delay | Fail


@dataclass(slots=True)
class _Rule:
    """One rule of the plan."""

    pattern: str
    effect: Effect
    host: str
    chance: float
    hit: int
    hits: int = field(default=0)

    def strikes(self, name: str, rng: Rng) -> bool:
        if not (fnmatchcase(name, self.pattern) and fnmatchcase(here(), self.host)):
            return False
        self.hits += 1
        if self.hit:
            return self.hits == self.hit
        return rng.random() < self.chance


class Faults:
    """The plan of faults. Each point has its own random stream, so a new point in the code does not affect the others."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rules: list[_Rule] = []
        self._streams: dict[str, Rng] = {}
        self._hits: Counter[str] = Counter()

    @property
    def hits(self) -> Mapping[str, int]:
        """The number of times each point was reached."""
        return self._hits

    def missed(self, points: Iterable[str]) -> list[str]:
        """The names in `points` that the run never reached."""
        return [name for name in points if not self._hits[name]]

    def sometimes(self, points: str, chance: float, effect: Effect, *, host: str = "*") -> None:
        """Adds a fault with this chance at every matching point on every matching host."""
        if not 0 <= chance <= 1:
            raise Invalid("sim.chance", f"{chance} is not a valid chance.", hint="It lies between 0 and 1.")
        self._rules.append(_Rule(points, effect, host, chance, hit=0))

    def at(self, points: str, hit: int, effect: Effect, *, host: str = "*") -> None:
        """Adds a fault that occurs once, when matching points are reached for the `hit`-th time from now."""
        if hit < 1:
            raise Invalid("sim.hit", f"{hit} is not a valid hit.", hint="The first is 1.")
        self._rules.append(_Rule(points, effect, host, 1.0, hit))

    def clear(self) -> None:
        """Removes all rules: no more faults are injected."""
        self._rules.clear()

    async def reach(self, name: str) -> None:
        """Injects the faults of a point. Called by `point` under simulation."""
        self._hits[name] += 1
        self._world.trace.add(f"point {name}")
        if name not in self._streams:
            self._streams[name] = self._world.chance(f"fault {name}")
        rng = self._streams[name]
        # Every rule counts every hit, even if an earlier rule applies.
        struck = [rule.effect for rule in self._rules if rule.strikes(name, rng)]
        for effect in struck[:1]:
            self._world.trace.add(f"fault {type(effect).__name__} at {name}")
            await self._apply(effect, rng)

    async def _apply(self, effect: Effect, rng: Rng) -> None:
        match effect:
            case Delay(most):
                await self._world.clock.sleep(most * rng.random())
            case Fail(error):
                raise error()
            case Crash(down):
                await self._crash(down)

    async def _crash(self, down: Duration | None) -> None:
        if here() == SCENARIO:
            raise Invalid("sim.crash", "The scenario itself cannot crash.", hint='Give the rule a host="…".')
        host = self._world.host(here())
        host.kill()
        if down is not None:
            self._world.loop.call_later(down.seconds, _start_again, host, context=self._world.context)
        # The step ends here, and a crashed process gets no other.
        await self._world.loop.create_future()


def _start_again(host: Host) -> None:
    if not host.up:
        host.restart()
