"""Services and pages of a controller, each made with the parts that it uses."""

from neorion.iris.app.parts import ControllerParts
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.worker_tokens import ROLE_JOIN, WORKER
from neorion.iris.model.gen.iris_connect import (
    ClusterServiceASGIApplication,
    JobServiceASGIApplication,
    WorkerServiceASGIApplication,
)
from neorion.iris.serve.cluster import ClusterEndpoint
from neorion.iris.serve.jobs import JobEndpoint
from neorion.iris.serve.messages import JobMessages
from neorion.iris.serve.task_auth import TASK
from neorion.iris.serve.workers import WorkerEndpoint
from neorion.keel.base import Duration
from neorion.keel.rpc import ANYONE, Route, RouteRequest, RouteResponse, RpcService
from neorion.keel.telemetry.metrics import CONTENT_TYPE, Metrics

# Anyone may read the metrics, and the gauges cost time for each waiting job: they may be this old.
GAUGES_FOR = Duration.of(seconds=1)
USERS = {"admin", "user"}
# Tasks submit jobs too; their reach is checked call by call.
WITH_WORK = USERS | {TASK}


def services(parts: ControllerParts) -> list[RpcService]:
    """Every method and who may call it."""
    return [_jobs(parts), _cluster(parts), _workers(parts)]


def routes(context: ControllerContext, metrics: Metrics) -> list[Route]:
    """The pages for probes and for Prometheus."""

    async def health(request: RouteRequest) -> RouteResponse:
        """Answers 200 also while the store is full: a failing probe would end a controller that only waits for space."""
        del request
        trouble = context.journal.trouble
        return RouteResponse(f"the store takes no changes: {trouble}\n".encode() if trouble else b"ok\n")

    async def ready(request: RouteRequest) -> RouteResponse:
        """Answers 503 while another controller may lead, so that a Service asks that one."""
        del request
        context.store.check_lease()
        return RouteResponse(b"ok\n")

    fresh_until = 0.0

    async def exposition(request: RouteRequest) -> RouteResponse:
        nonlocal fresh_until
        del request
        if (now := context.clock.monotonic()) >= fresh_until:
            fresh_until = now + GAUGES_FOR.seconds
            context.metrics.refresh(context.cluster, context.reasons.codes())
        return RouteResponse(metrics.exposition(), content_type=CONTENT_TYPE)

    return [
        Route("GET", "/health", health, frozenset({ANYONE})),
        Route("GET", "/ready", ready, frozenset({ANYONE})),
        Route("GET", "/metrics", exposition, frozenset({ANYONE})),
    ]


def _jobs(parts: ControllerParts) -> RpcService:
    workers_too = WITH_WORK | {WORKER}
    return RpcService(
        JobServiceASGIApplication,
        JobEndpoint(
            context=parts.context,
            audit_log=parts.audit_log,
            admission=parts.admission,
            lifecycle=parts.lifecycle,
            blobs=parts.blobs,
            uploads=parts.uploads,
            log_store=parts.log_store,
            watches=parts.watches,
            messages=JobMessages(parts.context, parts.reports),
        ),
        {
            "Submit": WITH_WORK,
            "Wait": WITH_WORK,
            "Get": WITH_WORK,
            "List": WITH_WORK,
            "Tasks": WITH_WORK,
            "Attempts": WITH_WORK,
            "Cancel": WITH_WORK,
            "Logs": WITH_WORK,
            "Watch": WITH_WORK,
            "GetBlob": workers_too,
            "PutBlob": workers_too,
        },
    )


def _cluster(parts: ControllerParts) -> RpcService:
    return RpcService(
        ClusterServiceASGIApplication,
        ClusterEndpoint(
            context=parts.context,
            audit_log=parts.audit_log,
            dispatcher=parts.dispatcher,
            worker_tokens=parts.worker_tokens,
            started=parts.context.clock.now(),
        ),
        {
            "Status": USERS,
            "Workers": USERS,
            "Slices": USERS,
            # For administrators alone. The handlers check that, so that a refusal is in the audit log.
            "Drain": USERS,
            "Revoke": USERS,
            "Audit": USERS,
        },
    )


def _workers(parts: ControllerParts) -> RpcService:
    return RpcService(
        WorkerServiceASGIApplication,
        WorkerEndpoint(
            context=parts.context,
            audit_log=parts.audit_log,
            reports=parts.reports,
            dispatcher=parts.dispatcher,
            log_store=parts.log_store,
            worker_tokens=parts.worker_tokens,
        ),
        {"Join": {ROLE_JOIN, WORKER}, "Orders": {WORKER}, "Report": {WORKER}, "PushLogs": {WORKER}},
    )
