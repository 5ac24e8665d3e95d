"""Publishes cost and usage of all development servers once, as a CronJob does every few minutes."""

from datetime import UTC, datetime

from neorion.devservers.adapters.cloudwatch import CloudWatch
from neorion.devservers.decide.usage_metrics import usage_metrics
from neorion.devservers.model.kube_types import DEVSERVERS
from neorion.keel.clock import Clock
from neorion.keel.kube.client import ClusterConfig, connect


async def publish_usage(cluster: ClusterConfig, target: CloudWatch, clock: Clock) -> int:
    """Returns the number of metrics."""
    async with connect(cluster, "devservers-metrics") as client:
        servers = (await client.list(DEVSERVERS)).items
    now = datetime.fromtimestamp(clock.now().ns // 1_000_000_000, UTC)
    metrics = usage_metrics(servers, now)
    await target.publish(metrics, now)
    return len(metrics)
