"""Runs a scenario under one seed and returns the outcome."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar, cast

from neorion.keel.base import Duration, Invalid, Terminal
from neorion.keel.sim.loop import SimulationLimits
from neorion.keel.sim.sandbox import is_sandboxed
from neorion.keel.sim.world import World

T = TypeVar("T")

Scenario = Callable[[World], Coroutine[Any, Any, T]]

# The lines of the trace that a failure shows; they fit a screen.
TAIL: Final = 40


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of a run. Equal digests mean equal runs, step by step."""

    seed: int
    value: T | None
    error: BaseException | None
    steps: int
    elapsed: Duration
    digest: str
    tail: tuple[str, ...]
    points: Mapping[str, int]

    @property
    def ok(self) -> bool:
        return self.error is None

    def check(self, replay: str = "") -> T:
        """Returns the scenario's value. Raises for a failed run, with the end of the trace and the way to repeat it."""
        if self.error is None:
            return cast("T", self.value)
        failure = Terminal(
            "sim.failed",
            f"seed {self.seed} failed at step {self.steps:,}, {self.elapsed.seconds:.6f} s:"
            f" {type(self.error).__name__}: {self.error}",
            hint=f"Replay: {replay or f'simulate(scenario, {self.seed})'}.",
        )
        failure.add_note(f"trace {self.digest}, its end:")
        for line in self.tail:
            failure.add_note(f"  {line}")
        raise failure from self.error


def simulate(scenario: Scenario[T], seed: int, *, limits: SimulationLimits | None = None) -> Outcome[T]:
    """Runs `scenario(world)` to its end. The same seed gives the same run.

    Failures are returned in the outcome; interruptions are raised.
    """
    if _is_in_loop():
        raise Invalid(
            "sim.nested", "A simulation runs its own loop.", hint="Call simulate from code that is not async."
        )
    world = World(seed, limits or SimulationLimits())
    value: T | None = None
    error: BaseException | None = None
    with is_sandboxed(), _orderly_finalizers():
        try:
            value = world.loop.run_main(scenario(world), world.context)
        except (Exception, asyncio.CancelledError) as failure:  # noqa: BLE001 -- a run's failure is its result
            error = failure
        except BaseException:
            # An interruption from outside. Waiting tasks are unwound, so that they do not disturb later code.
            with suppress(Terminal):
                world.loop.wind_up(world.processes)
            raise
        outcome = _outcome(world, value, error)
        try:
            world.loop.wind_up(world.processes)
        except Terminal as unending:
            outcome = replace(outcome, error=error or unending)
    return outcome


def _outcome(world: World, value: T | None, error: BaseException | None) -> Outcome[T]:
    return Outcome(
        seed=world.seed,
        value=value,
        error=error,
        steps=world.loop.steps,
        elapsed=Duration.of(seconds=world.loop.now),
        digest=world.trace.digest(world.loop.steps, world.loop.pulse, round(world.loop.now * 1e9)),
        tail=world.trace.tail(TAIL),
        points=dict(world.faults.hits),
    )


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _orderly_finalizers() -> Generator[None]:
    """Disables automatic garbage collection, whose moments depend on the process's past; the loop collects instead."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
