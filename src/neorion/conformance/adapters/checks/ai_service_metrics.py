"""ai_service_metrics: exactly k requests to a workload, and the monitoring system counts k."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.endpoint import Endpoint, endpoint
from neorion.conformance.adapters.kinds import POD, Json
from neorion.conformance.adapters.pods import NO_REAL_NODE, on_node, pod_spec, real_node
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import monitoring
from neorion.conformance.decide.nodes import environment_of
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome
from neorion.keel.base import Duration, Error

_PORT: Final = 8080
_REQUESTS: Final = 7


async def _run(workspace: Workspace) -> Outcome:
    if not workspace.options.prometheus:
        return Outcome(missing="No monitoring system is named: give its address with --prometheus.")
    node = await real_node(workspace)
    if node is None:
        return Outcome(missing=NO_REAL_NODE)
    async with endpoint(workspace.api, workspace.options.prometheus) as prometheus:
        await _counts(workspace, node, prometheus)
    return Outcome(
        environment_of(node, hardware=workspace.options.hardware),
        tuple(workspace.assertions),
        tuple(workspace.controls),
        subject="prometheus",
    )


async def _counts(workspace: Workspace, node: Json, prometheus: Endpoint) -> None:
    nonce = workspace.run[-12:]
    discovered = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(_PORT),
        "prometheus.io/path": "/cgi-bin/metrics",
    }
    await _serve(workspace, node, "server", nonce, discovered)
    # Not discovered, with series of its own.
    await _serve(workspace, node, "hidden", f"{nonce}-hidden", {})
    for name in ("server", "hidden"):
        for _ in range(_REQUESTS):
            await workspace.api.read_text(_path(workspace, name, "infer"))
    counter = f'{monitoring.COUNTER}{{run="{nonce}"}}'
    words = "the counter has every request"
    began = workspace.clock.monotonic()
    found = await _until_counted(workspace, prometheus, counter, workspace.options.patience)
    # As long as the discovered workload took: by then the other one would have been found, too.
    within = Duration.of(seconds=max(workspace.options.window.seconds, workspace.clock.monotonic() - began))
    workspace.assert_that(monitoring.counted(words, found, _REQUESTS))
    workspace.assert_that(monitoring.labelled(found, workspace.namespace, "server"))
    histogram = await _query(prometheus, f'{monitoring.HISTOGRAM}_count{{run="{nonce}"}}')
    workspace.assert_that(monitoring.counted("the histogram has every request", histogram, _REQUESTS))
    up = await _query(prometheus, f'up{{namespace="{workspace.namespace}",pod="server"}}')
    workspace.assert_that(monitoring.counted("the target is up", up, 1))
    workspace.control(
        control_of("one request more than were sent", monitoring.counted(words, found, _REQUESTS + 1))
    )
    undiscovered = f'{monitoring.COUNTER}{{run="{nonce}-hidden"}}'
    hidden = await _until_counted(workspace, prometheus, undiscovered, within)
    workspace.control(
        control_of("a workload that is not discovered", monitoring.counted(words, hidden, _REQUESTS))
    )
    await workspace.api.delete(POD, "server", workspace.namespace, at_once=True)
    began = workspace.clock.monotonic()
    while (
        left := await _query(prometheus, counter)
    ) and workspace.clock.monotonic() - began < workspace.options.patience.seconds:
        await workspace.clock.sleep(workspace.pause)
    workspace.assert_that(monitoring.gone(left, workspace.clock.monotonic() - began))


async def _serve(
    workspace: Workspace, node: Json, name: str, nonce: str, annotations: dict[str, str]
) -> None:
    spec = on_node(pod_spec(workspace, None, 0, ("sh", "-c", monitoring.server_script(_PORT, nonce))), node)
    spec["containers"][0]["ports"] = [{"containerPort": _PORT}]
    await workspace.create(POD, name, {"metadata": {"annotations": annotations}, "spec": spec})
    until = workspace.clock.monotonic() + workspace.options.patience.seconds
    while True:
        try:
            await workspace.api.read_text(_path(workspace, name, "metrics"))
        except Error:
            if workspace.clock.monotonic() > until:
                raise
            await workspace.clock.sleep(workspace.pause)
        else:
            return


async def _until_counted(
    workspace: Workspace, prometheus: Endpoint, query: str, within: Duration
) -> list[Json]:
    """The samples once every request was counted, or those at the end of the time."""
    until = workspace.clock.monotonic() + within.seconds
    while True:
        found = await _query(prometheus, query)
        if monitoring.counted("", found, _REQUESTS).held or workspace.clock.monotonic() > until:
            return found
        await workspace.clock.sleep(workspace.pause)


async def _query(prometheus: Endpoint, query: str) -> list[Json]:
    return [dict(each) for each in monitoring.samples(await prometheus.json("/api/v1/query", query=query))]


def _path(workspace: Workspace, pod: str, script: str) -> str:
    return f"/api/v1/namespaces/{workspace.namespace}/pods/{pod}:{_PORT}/proxy/cgi-bin/{script}"


AI_SERVICE_METRICS: Final = Check(
    "ai_service_metrics",
    CheckPlan(
        ("2 Pods",),
        ("Prometheus, named by --prometheus", "a real kubelet", "an image with a shell and httpd"),
        30,
    ),
    _run,
    ("get pods/proxy",),
)
