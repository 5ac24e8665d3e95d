"""One simulated world: its time, its chance, its hosts, its network, its faults, and what happened in it."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from random import Random  # noqa: TID251 -- its type alone: `seeded_rng` makes it

from neorion.keel.base import Duration, Finding, Invalid, Terminal
from neorion.keel.clock import SeededIds, VirtualClock, seeded_rng
from neorion.keel.clock.fault_points import set_fault_hook
from neorion.keel.sim.faults import Faults
from neorion.keel.sim.host import Host
from neorion.keel.sim.loop import SeededLoop, SimulationLimits
from neorion.keel.sim.network import Network
from neorion.keel.sim.network_links import Links
from neorion.keel.sim.process import Process
from neorion.keel.sim.trace import Trace

Checker = Callable[[], Sequence[Finding]]


class World:
    """Everything a scenario needs. Each concern draws from a stream of its own, so that one does not disturb another."""

    def __init__(self, seed: int, limits: SimulationLimits) -> None:
        self.seed = seed
        self.loop = SeededLoop(self.chance("order"), limits)
        self.trace = Trace(lambda: self.loop.now)
        self.clock = VirtualClock(self.loop.time)
        self.rng = self.chance("scenario")
        self.ids = SeededIds(self.chance("ids"), self.clock)
        self.faults = Faults(self)
        self.context = copy_context()
        self.context.run(set_fault_hook, self.faults.reach)
        weather = self.chance("weather")
        self.links = Links(self.loop, weather, self.trace, self.context)
        self.network = Network(self.loop, self.links, weather, self.trace)
        self.processes: list[Process] = []
        self._hosts: dict[str, Host] = {}
        self._checkers: list[tuple[Checker, int]] = []

    def chance(self, concern: str) -> Random:
        """A stream of its own for one concern, the same for the same seed."""
        return seeded_rng(f"{self.seed}/{concern}")

    def host(self, name: str) -> Host:
        """Returns the host of this name, creating it at the first call."""
        if name not in self._hosts:
            self._hosts[name] = Host(self, name)
        return self._hosts[name]

    def check(self, violations: Checker, *, every: int = 1) -> None:
        """Calls `violations()` after every step, or every so many; its first finding ends the run."""
        if every < 1:
            raise Invalid("sim.every", f"Nothing happens every {every} steps.", hint="Use 1 or more.")
        self._checkers.append((violations, every))
        self.loop.after_step = self._run_checkers

    async def sleep(self, seconds: float) -> None:
        """Lets the scenario wait; applications sleep by their clock."""
        await self.clock.sleep(Duration.of(seconds=seconds))

    def note(self, event: str) -> None:
        """A line of the scenario's or the application's own in the trace."""
        self.trace.add(event)

    def _run_checkers(self) -> None:
        steps = self.loop.steps
        for violations, every in self._checkers:
            if steps % every == 0:
                found = violations()
                if found:
                    told = "\n".join(f"  {f.code} {f.subject}: {f.sentence}" for f in found)
                    raise Terminal(
                        "sim.violated", f"A law was broken.\n{told}", hint="Read the trace backwards."
                    )
