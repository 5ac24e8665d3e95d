"""Runs a scenario under many seeds, or turns it into a test."""

import functools
import inspect
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Final, ParamSpec

from neorion.keel.base import Invalid, Terminal
from neorion.keel.sim.loop import SimulationLimits
from neorion.keel.sim.run import Outcome, Scenario, simulate
from neorion.keel.sim.world import World

P = ParamSpec("P")

SEED_VARIABLE: Final = "NEORION_SEED"
# "even" or "odd": every second seed, for test runs with little time.
HALF_VARIABLE: Final = "NEORION_SEEDS"
# A scenario with fewer seeds than this always runs under all of them.
_HALVED_MIN: Final = 10
# More failures than this teach nothing new.
FAILURES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Report:
    """The results of many seeds."""

    runs: int
    distinct: int
    failures: tuple[Outcome[Any], ...]
    points: Mapping[str, int]

    @property
    def first_failure(self) -> Outcome[Any] | None:
        """The failure with the smallest seed."""
        return min(self.failures, key=lambda outcome: outcome.seed, default=None)

    def missed(self, points: Iterable[str]) -> list[str]:
        """The names in `points` that no run reached."""
        return [name for name in points if not self.points.get(name)]


def explore(
    scenario: Scenario[Any],
    seeds: Iterable[int],
    *,
    limits: SimulationLimits | None = None,
    failures_max: int = FAILURES_MAX,
) -> Report:
    """Runs the scenario under each seed until enough have failed."""
    runs = 0
    failures = list[Outcome[Any]]()
    digests = set[str]()
    points = Counter[str]()
    for seed in seeds:
        outcome = simulate(scenario, seed, limits=limits)
        runs += 1
        digests.add(outcome.digest)
        points.update(outcome.points)
        if not outcome.ok:
            failures.append(outcome)
            if len(failures) >= failures_max:
                break
    return Report(runs, len(digests), tuple(failures), dict(points))


def seeds(
    count: int, *, limits: SimulationLimits | None = None
) -> Callable[[Callable[Concatenate[World, P], Coroutine[Any, Any, None]]], Callable[P, None]]:
    """Turns a scenario into a test: it must pass under seeds 0 to count - 1, or under the one in NEORION_SEED.

    NEORION_SEEDS=even (or odd) skips every second seed. The first seed runs twice: a scenario that does not repeat
    cannot be replayed, and fails.
    """

    def decorate(scenario: Callable[Concatenate[World, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
        @functools.wraps(scenario)
        def test(*args: P.args, **kwargs: P.kwargs) -> None:
            def run(world: World) -> Coroutine[Any, Any, None]:
                return scenario(world, *args, **kwargs)

            chosen = _chosen(count)
            _check_repeats(run, chosen[0], limits)
            failure = explore(run, chosen, limits=limits, failures_max=1).first_failure
            if failure is not None:
                failure.check(_replay(scenario, failure.seed))

        # A test runner must not see `world` as a fixture, nor the test as a coroutine.
        del test.__wrapped__
        _world, *others = inspect.signature(scenario).parameters.values()
        test.__signature__ = inspect.Signature(others)  # pyright: ignore[reportAttributeAccessIssue] -- what inspect reads
        return test

    return decorate


def half_of(seeds: range) -> range:
    """The even or the odd ones of many seeds if NEORION_SEEDS is set, otherwise all."""
    match os.environ.get(HALF_VARIABLE):
        case None:
            return seeds
        case "even" | "odd" as half:
            first = seeds.start + (seeds.start % 2 != (half == "odd"))
            return seeds if len(seeds) < _HALVED_MIN else range(first, seeds.stop, 2)
        case text:
            raise Invalid(
                "sim.seeds",
                f'{HALF_VARIABLE}="{text}" is not a half of the seeds.',
                hint="Write even or odd.",
            )


def _chosen(count: int) -> range:
    text = os.environ.get(SEED_VARIABLE)
    if text is None:
        return half_of(range(count))
    if not text.isdecimal():
        raise Invalid("sim.seed", f'{SEED_VARIABLE}="{text}" is not a seed.', hint="Write a whole number.")
    return range(int(text), int(text) + 1)


def _check_repeats(scenario: Scenario[None], seed: int, limits: SimulationLimits | None) -> None:
    once, twice = (simulate(scenario, seed, limits=limits) for _ in range(2))
    if once.digest != twice.digest:
        different = next(
            (pair for pair in zip(once.tail, twice.tail, strict=False) if pair[0] != pair[1]), None
        )
        raise Terminal(
            "sim.unrepeatable",
            f"Seed {seed} gave two different runs; the traces first differ at {different}.",
            hint="Look for sets that are iterated, ids of objects, state kept between runs.",
        )


def _replay(scenario: Callable[..., object], seed: int) -> str:
    # pytest sets the running test: "tests/sim/test_lease.py::test_one_holder (call)".
    current = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
    return f"{SEED_VARIABLE}={seed} pytest {current or getattr(scenario, '__qualname__', scenario)!r}"
