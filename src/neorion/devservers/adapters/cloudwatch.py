"""CloudWatch, through the vendor's own client. Credentials are found as that client finds them (IRSA in a Pod)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

import anyio.to_thread
import boto3  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types
from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore[reportMissingTypeStubs] -- the vendor ships no types

from neorion.devservers.decide.usage_metrics import Metric
from neorion.keel.base import Denied, Error, Retry

# The most that one PutMetricData takes.
BATCH: Final = 1_000
_TIMEOUTS: Final = Config(
    connect_timeout=5, read_timeout=30, retries={"total_max_attempts": 3, "mode": "standard"}
)
_DENIED: Final = frozenset(
    {"AccessDenied", "ExpiredToken", "InvalidClientTokenId", "UnrecognizedClientException"}
)


class _Client(Protocol):
    """The method of the vendor's client that is used."""

    def put_metric_data(self, *, Namespace: str, MetricData: Sequence[dict[str, Any]]) -> object: ...  # noqa: N803 -- the vendor's names


@dataclass(frozen=True, slots=True)
class CloudWatch:
    """One namespace of metrics in one region. Without `region` and `endpoint` the client's own apply."""

    namespace: str
    region: str = ""
    endpoint: str = ""

    async def publish(self, metrics: Sequence[Metric], at: datetime) -> None:
        """Batches are written one after the other; those before a failed one stay."""
        await anyio.to_thread.run_sync(partial(self._publish, metrics, at))

    def _publish(self, metrics: Sequence[Metric], at: datetime) -> None:
        try:
            # A session of its own: the shared one keeps the credentials of its first use.
            client = cast(
                "_Client",
                boto3.Session().client(  # pyright: ignore[reportUnknownMemberType] -- as above
                    "cloudwatch",
                    region_name=self.region or None,
                    endpoint_url=self.endpoint or None,
                    config=_TIMEOUTS,
                ),
            )
            for first in range(0, len(metrics), BATCH):
                batch = [_datum(metric, at) for metric in metrics[first : first + BATCH]]
                client.put_metric_data(Namespace=self.namespace, MetricData=batch)
        except (BotoCoreError, ClientError) as error:
            raise _typed(error) from error


def _datum(metric: Metric, at: datetime) -> dict[str, Any]:
    return {
        "MetricName": metric.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
        "Timestamp": at,
        "Value": metric.value,
        "Unit": metric.unit.value,
    }


def _typed(error: Exception) -> Error:
    response = cast("dict[str, Any]", getattr(error, "response", {}))
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in _DENIED or status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return Denied(
            "devservers.cloudwatch_denied",
            f"CloudWatch refused the metrics: {error}.",
            hint="Give the service account devservers-metrics the role of policies/devservers-metrics.json.",
        )
    return Retry("devservers.cloudwatch", f"The metrics could not be published: {error}.")
