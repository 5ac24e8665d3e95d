"""The operator as a process: connected to a cluster, asked for its health and its figures over HTTP."""

import socket

from neorion.devservers.adapters import Inside, Webhook
from neorion.devservers.adapters.hostkeys import Keymaker
from neorion.devservers.app.config import OperatorFile
from neorion.devservers.app.metrics import FleetMetrics
from neorion.devservers.app.operator import Plan, Reach, build
from neorion.keel.base import Severity
from neorion.keel.clock import Clock, Ids, Rng, SystemClock, SystemIds, system_rng
from neorion.keel.kube.client import Cluster, connect
from neorion.keel.kube.control import Operator
from neorion.keel.kube.control.metrics import ControlMetrics
from neorion.keel.rpc import ANYONE, App, Request, Response, Route, serve
from neorion.keel.run import Crew
from neorion.keel.telemetry.metrics import CONTENT_TYPE, Metrics


async def run_operator(crew: Crew, file: OperatorFile, cluster: Cluster) -> None:
    """Until the crew stops: then what is in hand is finished, and the lease given back."""
    clock, rng, ids, metrics = SystemClock(), system_rng(), SystemIds(), Metrics()
    async with connect(cluster, "devservers", clock, rng) as api:
        plan = Plan(file.settings(), file.namespace, identity(ids), file.scope)
        inside, fleet = Inside(api), FleetMetrics(metrics)
        reach = Reach(inside, inside, webhook(file, clock, rng), fleet, Keymaker())
        operator = build(api, plan, clock, rng, ControlMetrics(metrics), reach)
        app = App([], routes(operator, metrics, fleet), ids=ids)
        # Health and figures are for whoever asks; who writes another host in the file wants them asked from elsewhere.
        async with serve(app, file.host, file.port, open_to_network=True):
            await operator.run(crew.stopping)


def webhook(file: OperatorFile, clock: Clock, rng: Rng) -> Webhook | None:
    told = file.webhook
    return Webhook(told.url, clock, rng, allow_private=told.allow_private) if told else None


def identity(ids: Ids) -> str:
    """The process's own: a container that was restarted has the name of its pod, and is another."""
    # As Kubernetes' own: no pod has such a character in its name, so whoever reads the lease finds it.
    return f"{socket.gethostname()}_{ids.secret()[:8]}"


def routes(operator: Operator, metrics: Metrics, fleet: FleetMetrics) -> list[Route]:
    async def alive(request: Request) -> Response:
        del request
        return Response(b"ok\n")

    async def ready(request: Request) -> Response:
        del request
        findings = operator.health()
        told = "".join(f"{one.severity.value} {one.subject}: {one.sentence}\n" for one in findings) or "ok\n"
        cold = any(one.severity is Severity.ERROR for one in findings)
        return Response(told.encode(), status=503 if cold else 200)

    async def exposition(request: Request) -> Response:
        del request
        fleet.refresh()
        return Response(metrics.exposition(), content_type=CONTENT_TYPE)

    everybody = frozenset({ANYONE})
    return [
        Route("GET", "/healthz", alive, everybody),
        Route("GET", "/readyz", ready, everybody),
        Route("GET", "/metrics", exposition, everybody),
    ]
