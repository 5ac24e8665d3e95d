"""The plan for fault points: what goes wrong where, when, and how often."""

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
    """The host crashes there and, if `down` says how long, starts anew after that."""

    down: Duration | None = None


@dataclass(frozen=True, slots=True)
class Delay:
    """The task waits there, up to `most`."""

    most: Duration


@dataclass(frozen=True, slots=True)
class Fail:
    """The point raises what `error()` makes."""

    error: Callable[[], Exception]


Effect = Crash | Delay | Fail


@dataclass(slots=True)
class _Rule:
    """One line of the plan."""

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
    """Each point draws from a stream of its own: a new point in the code leaves the fate of the others as it was."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rules: list[_Rule] = []
        self._streams: dict[str, Rng] = {}
        self._hits: Counter[str] = Counter()

    @property
    def hits(self) -> Mapping[str, int]:
        """How often each point was reached."""
        return self._hits

    def missed(self, points: Iterable[str]) -> list[str]:
        """Those of `points` that the run never reached."""
        return [name for name in points if not self._hits[name]]

    def sometimes(self, points: str, chance: float, effect: Effect, *, host: str = "*") -> None:
        """At every point that matches, on every host that matches, with this chance."""
        if not 0 <= chance <= 1:
            raise Invalid("sim.chance", f"{chance} is no chance.", hint="It lies between 0 and 1.")
        self._rules.append(_Rule(points, effect, host, chance, hit=0))

    def at(self, points: str, hit: int, effect: Effect, *, host: str = "*") -> None:
        """Once: when the points that match have been reached for the `hit`-th time from now."""
        if hit < 1:
            raise Invalid("sim.hit", f"There is no hit {hit}.", hint="The first is 1.")
        self._rules.append(_Rule(points, effect, host, 1.0, hit))

    def clear(self) -> None:
        """Forgets the plan: from now on nothing goes wrong by itself."""
        self._rules.clear()

    async def reach(self, name: str) -> None:
        """What `point` calls under simulation."""
        self._hits[name] += 1
        self._world.trace.add(f"point {name}")
        if name not in self._streams:
            self._streams[name] = self._world.chance(f"fault {name}")
        rng = self._streams[name]
        # Every rule counts every hit, whether or not an earlier one strikes.
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
        # The step ends here, and a dead process gets no other.
        await self._world.loop.create_future()


def _start_again(host: Host) -> None:
    if not host.up:
        host.restart()
