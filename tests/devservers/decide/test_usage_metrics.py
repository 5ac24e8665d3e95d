"""Cost and usage as metrics: by user and together, exact, and never two currencies in one sum."""

from datetime import UTC, datetime, timedelta

from neorion.devservers.decide.usage_metrics import Metric, usage_metrics
from neorion.devservers.model import Cost, DevServerSpec, DevServerStatus
from neorion.devservers.model.kube_types import DevServerObject
from neorion.keel.kube import ObjectMeta

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def server(user: str, *, running: bool, per_hour: str, currency: str = "USD") -> DevServerObject:
    """One that has run for two hours, or stood for two hours."""
    cost = Cost(
        as_of=NOW - timedelta(hours=2),
        running=running,
        currency=currency,
        per_hour=per_hour,
        stopped_per_hour="0.01",
    )
    return DevServerObject(
        meta=ObjectMeta(name="box", namespace=f"dev-{user}"),
        spec=DevServerSpec(flavor="g5.xlarge", owner="somebody-else"),
        status=DevServerStatus(cost=cost),
    )


def values(metrics: tuple[Metric, ...], **dimensions: str) -> dict[str, float]:
    return {one.name: one.value for one in metrics if dict(one.dimensions) == dimensions}


def test_each_user_and_all_of_them():
    found = usage_metrics(
        [
            server("ann", running=True, per_hour="1.006"),
            server("ann", running=False, per_hour="1.006"),
            server("bob", running=True, per_hour="32.77"),
        ],
        NOW,
    )
    assert values(found, Currency="USD", User="ann") == {
        "Servers": 2,
        "RunningServers": 1,
        "RunningTime": 7200,
        "CostPerHour": 1.016,
        "CostSoFar": 2.032,
    }
    together = values(found, Currency="USD")
    assert (together["Servers"], together["RunningServers"], together["CostPerHour"]) == (3, 2, 33.786)


def test_two_currencies_are_two_series():
    found = usage_metrics(
        [
            server("ann", running=True, per_hour="1"),
            server("ann", running=True, per_hour="2", currency="EUR"),
        ],
        NOW,
    )
    assert values(found, Currency="USD", User="ann")["CostPerHour"] == 1
    assert values(found, Currency="EUR")["CostPerHour"] == 2


def test_a_server_without_an_account_counts_and_costs_nothing():
    bare = DevServerObject(
        meta=ObjectMeta(name="box", namespace="lab"), spec=DevServerSpec(flavor="cpu-small")
    )
    assert values(usage_metrics([bare], NOW), Currency="USD", User="lab") == {
        "Servers": 1,
        "RunningServers": 0,
        "RunningTime": 0,
        "CostPerHour": 0,
        "CostSoFar": 0,
    }
    assert usage_metrics([], NOW) == ()
