"""The operator as a process: connected to a cluster, asked for its health and its figures over HTTP."""

import socket
from dataclasses import dataclass, field

from neorion.devservers.adapters import PodExec
from neorion.devservers.adapters.host_keys import HostKeyGenerator
from neorion.devservers.app.metrics import FleetMetrics
from neorion.devservers.app.operator import OperatorAdapters, OperatorOptions, build
from neorion.devservers.decide import OperatorSettings
from neorion.devservers.ports import AlertHook
from neorion.keel.base import Severity
from neorion.keel.clock import Clock, Ids, Rng, SystemClock, SystemIds, system_rng
from neorion.keel.kube.client import ClusterConfig, connect
from neorion.keel.kube.control import Operator
from neorion.keel.kube.control.metrics import ControlMetrics
from neorion.keel.rpc import ANYONE, AsgiApp, Route, RouteRequest, RouteResponse, serve
from neorion.keel.run import Supervisor
from neorion.keel.telemetry.metrics import CONTENT_TYPE, Metrics


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Address to which warnings are posted. It is a secret, because it suffices to post there."""

    url: str = field(repr=False)
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """Configuration of the operator, independent of its file's format."""

    settings: OperatorSettings
    namespace: str
    scope: str
    host: str
    port: int
    webhook: WebhookTarget | None = None


async def run_operator(crew: Supervisor, orders: OperatorConfig, cluster: ClusterConfig) -> None:
    """Until the crew stops: then what is in hand is finished, and the lease given back."""
    clock, rng, ids, metrics = SystemClock(), system_rng(), SystemIds(), Metrics()
    async with connect(cluster, "devservers", clock, rng) as api:
        plan = OperatorOptions(orders.settings, orders.namespace, identity(ids), orders.scope)
        inside, fleet = PodExec(api), FleetMetrics(metrics)
        reach = OperatorAdapters(inside, inside, _hook(orders.webhook, clock, rng), fleet, HostKeyGenerator())
        operator = build(api, plan, clock, rng, ControlMetrics(metrics), reach)
        app = AsgiApp([], routes(operator, metrics, fleet), ids=ids)
        # Health and metrics need no authentication. Another host in the file opens them to the network on purpose.
        async with serve(app, orders.host, orders.port, open_to_network=True):
            await operator.run(crew.stopping)


def _hook(address: WebhookTarget | None, clock: Clock, rng: Rng) -> AlertHook | None:
    if address is None:
        return None
    # Secrets come with the models of files, ten megabytes that an operator without a webhook does without.
    from neorion.devservers.adapters.webhook import AlertWebhook  # noqa: PLC0415 -- see above
    from neorion.keel.config import SecretValue  # noqa: PLC0415 -- see above

    return AlertWebhook(SecretValue(address.url), clock, rng, allow_private=address.allow_private)


def identity(ids: Ids) -> str:
    """The process's own: a container that was restarted has the name of its pod, and is another."""
    # As in Kubernetes' own leases. No pod's name has an underscore, so the pod's name can be read from the lease.
    return f"{socket.gethostname()}_{ids.secret()[:8]}"


def routes(operator: Operator, metrics: Metrics, fleet: FleetMetrics) -> list[Route]:
    async def alive(request: RouteRequest) -> RouteResponse:
        del request
        return RouteResponse(b"ok\n")

    async def ready(request: RouteRequest) -> RouteResponse:
        del request
        findings = operator.health()
        told = "".join(f"{one.severity.value} {one.subject}: {one.sentence}\n" for one in findings) or "ok\n"
        cold = any(one.severity is Severity.ERROR for one in findings)
        return RouteResponse(told.encode(), status=503 if cold else 200)

    async def exposition(request: RouteRequest) -> RouteResponse:
        del request
        fleet.refresh()
        return RouteResponse(metrics.exposition(), content_type=CONTENT_TYPE)

    everybody = frozenset({ANYONE})
    return [
        Route("GET", "/healthz", alive, everybody),
        Route("GET", "/readyz", ready, everybody),
        Route("GET", "/metrics", exposition, everybody),
    ]
