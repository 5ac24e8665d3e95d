"""Fleets drawn from a seed: twenty to fifty nodes, with every kind of trouble in them."""

from random import Random  # noqa: TID251 -- its type alone: the world makes it

from neorion.keel.base import Duration
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.app.control_plane import LoopIntervals
from neorion.navarch.app.simulation.scenario import FailureRates, Scenario
from neorion.navarch.model import PoolSpec
from neorion.navarch.model.spec import (
    Budget,
    CountOrPercent,
    HealthRules,
    Offer,
    Scaling,
    SpendLimits,
    Strategy,
    Timing,
)

POLICIES = {"default": default_policy()}
# A day of a small fleet in a fraction of a second: agents beat every ten minutes, and loops count on being woken.
SLOW = LoopIntervals(
    tick=Duration.of(minutes=20),
    sweep=Duration.of(minutes=10),
    retention=Duration.of(minutes=60),
    market=Duration.of(minutes=20),
)
_TIMING = Timing(
    heartbeat=Duration.of(minutes=10),
    silence=Duration.of(minutes=25),
    boot=Duration.of(minutes=15),
    verify=Duration.of(minutes=1),
)


def small_fleet(rng: Random) -> Scenario:
    """Another fleet for every seed."""
    nodes = rng.randrange(20, 51)
    clouds = rng.choice((("east",), ("east", "west")))
    budget = rng.choice((CountOrPercent(count=1), CountOrPercent(count=3), CountOrPercent(percent=10)))
    spec = PoolSpec(
        "training",
        tuple(
            Offer(name, "gpu_8x_h100_sxm5", ("us-1",), ("us-1a", "us-1b"), priority=10 * (index + 1))
            for index, name in enumerate(clouds)
        ),
        rng.choice((Strategy.PRIORITY, Strategy.ROUND_ROBIN)),
        Scaling(
            nodes,
            nodes,
            rng.randrange(0, 3),
            surge=rng.choice((CountOrPercent(count=0), CountOrPercent(percent=10))),
        ),
        HealthRules(budgets=(Budget(budget),)),
        _TIMING,
        SpendLimits(per_hour=2 * nodes),
    )
    return Scenario(
        {spec.name: spec},
        POLICIES,
        small_storm(rng),
        Duration.of(hours=20),
        calm=Duration.of(hours=12),
        leaves_within=Duration.of(minutes=2),
        joins_within=rng.choice((Duration(0), Duration.of(minutes=4))),
        rhythm=SLOW,
    )


def large_fleet() -> Scenario:
    """A thousand nodes at default intervals for five days, ten times as unlucky as published."""
    spec = PoolSpec(
        "training",
        (Offer("east", "gpu_8x_h100_sxm5", ("us-1",), ("us-1a", "us-1b")),),
        scaling=Scaling(1_000, 1_000, 10),
        spending=SpendLimits(per_hour=2_000),
    )
    troubles = FailureRates(
        wear=10, bugs=10, racks=1, cascade=0.1, rollouts=0.2, rollout_share=0.05, outages=1, stockouts=1,
        quotas=0.5, blinds=0.5, lost=0.02, wedged=0.004, unfit=0.004, kills=1, kill_at_points=0.0005,
    )  # fmt: skip
    return Scenario(
        {spec.name: spec}, POLICIES, troubles, Duration.of(hours=5 * 24), calm=Duration.of(hours=24)
    )


def small_storm(rng: Random) -> FailureRates:
    """A year's worth of troubles in a day."""
    return FailureRates(
        wear=rng.uniform(20, 120),
        bugs=rng.uniform(20, 200),
        racks=rng.choice((0.0, 1.0)),
        cascade=rng.choice((0.0, 0.3)),
        rollouts=rng.choice((0.0, 0.5)),
        outages=rng.choice((0.0, 2.0)),
        stockouts=rng.choice((0.0, 2.0)),
        quotas=rng.choice((0.0, 1.0)),
        blinds=rng.choice((0.0, 1.0)),
        lost=rng.choice((0.0, 0.1)),
        wedged=rng.choice((0.0, 0.05)),
        unfit=rng.choice((0.0, 0.05)),
        kills=rng.choice((0.0, 4.0)),
        kill_at_points=rng.choice((0.0, 0.004)),
        scheduler_lost=rng.choice((0.0, 0.0, 0.3)),
    )
