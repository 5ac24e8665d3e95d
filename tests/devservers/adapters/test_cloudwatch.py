"""Cost and usage reach CloudWatch: a real endpoint, moto's, read back by the vendor's client."""

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
import pytest
from moto.core.authorization import settings as moto_settings
from moto.server import ThreadedMotoServer

from neorion.devservers.adapters.cloudwatch import BATCH, CloudWatch
from neorion.devservers.decide.usage_metrics import Metric, Unit
from neorion.keel.base import Denied, Retry
from neorion.keel.clock import SystemClock
from tests.capacity.clouds.ec2 import KEYS

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("moto")]

NOW = datetime.fromtimestamp(SystemClock().now().ns // 1_000_000_000, UTC)
NAMESPACE, REGION = "Neorion/DevServers", "us-west-2"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def reader(endpoint: str) -> Any:
    return boto3.client("cloudwatch", region_name=REGION, endpoint_url=endpoint)


async def test_what_is_published_is_read_back(endpoint: str):
    ann = (("Currency", "USD"), ("User", "ann"))
    metrics = [
        Metric("CostPerHour", 3.06, Unit.NONE, ann),
        Metric("Servers", 2, Unit.COUNT, (("Currency", "USD"),)),
    ]
    await CloudWatch(NAMESPACE, REGION, endpoint).publish(metrics, NOW)
    found = reader(endpoint).get_metric_statistics(
        Namespace=NAMESPACE,
        MetricName="CostPerHour",
        Dimensions=[{"Name": name, "Value": value} for name, value in ann],
        StartTime=NOW - timedelta(minutes=1),
        EndTime=NOW + timedelta(minutes=1),
        Period=60,
        Statistics=["Sum"],
    )
    assert [point["Sum"] for point in found["Datapoints"]] == [3.06]
    assert {one["MetricName"] for one in reader(endpoint).list_metrics(Namespace=NAMESPACE)["Metrics"]} == {
        "CostPerHour",
        "Servers",
    }


async def test_more_than_one_batch_arrives_whole(endpoint: str):
    users = [f"user-{number}" for number in range(BATCH + 7)]
    metrics = [Metric("Servers", 1, Unit.COUNT, (("User", user),)) for user in users]
    await CloudWatch("Many", REGION, endpoint).publish(metrics, NOW)
    pages = reader(endpoint).get_paginator("list_metrics").paginate(Namespace="Many")
    found = {value["Value"] for page in pages for one in page["Metrics"] for value in one["Dimensions"]}
    assert found == set(users)


async def test_without_credentials_it_says_so(endpoint: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(Retry, match="Unable to locate credentials"):
        await CloudWatch(NAMESPACE, REGION, endpoint).publish([Metric("Servers", 1, Unit.COUNT)], NOW)


@pytest.fixture
def locked(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every caller needs rights, and these keys have none."""
    monkeypatch.setattr(moto_settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0)
    return endpoint


async def test_a_refusal_names_the_policy(locked: str):
    with pytest.raises(Denied, match="CloudWatch refused the metrics") as refused:
        await CloudWatch(NAMESPACE, REGION, locked).publish([Metric("Servers", 1, Unit.COUNT)], NOW)
    assert (refused.value.code, "devservers-metrics.json" in refused.value.hint) == (
        "devservers.cloudwatch_denied",
        True,
    )
    assert "a-secret-key-of-aws" not in str(refused.value)


async def test_an_endpoint_that_is_away_is_worth_another_try(endpoint: str):
    del endpoint
    with pytest.raises(Retry, match="Could not connect"):
        await CloudWatch(NAMESPACE, REGION, "http://127.0.0.1:9").publish(
            [Metric("Servers", 1, Unit.COUNT)], NOW
        )
