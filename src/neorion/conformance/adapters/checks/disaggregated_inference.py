"""disaggregated_inference: one request through a prefill pod and a decode pod, which scale apart from each other."""

from collections.abc import Mapping
from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.kinds import DEPLOYMENT, POD, SERVICE, Json
from neorion.conformance.adapters.pods import NO_REAL_NODE, named, on_node, pod_spec, real_node
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import disaggregation as judge
from neorion.conformance.decide.nodes import is_ready
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome
from neorion.keel.base import Duration, Error

_PORT: Final = 8080
_ROLE: Final = "conformance.neorion.dev/role"
_ONE_EACH: Final = {judge.PREFILL: 1, judge.DECODE: 1}
_LIMITS: Final = (
    "The servers are stand-ins that hold no model: the pattern is shown, not a serving stack nor a transfer between accelerators.",
)


async def _run(workspace: Workspace) -> Outcome:
    node = await real_node(workspace)
    if node is None:
        return Outcome(missing=NO_REAL_NODE)
    await _deploy(workspace, node)
    await _counts(workspace, _ONE_EACH)
    logs = await _logs_of(workspace, "first")
    workspace.assert_that(judge.both_served("first", logs))
    workspace.assert_that(judge.handed_over("first", logs[judge.DECODE]))
    await _scale(workspace, judge.PREFILL, 2)
    counts = await _counts(workspace, {**_ONE_EACH, judge.PREFILL: 2})
    workspace.assert_that(judge.scaled_alone(judge.PREFILL, counts, _ONE_EACH, 2))
    await _scale(workspace, judge.PREFILL, 0)
    none = {**_ONE_EACH, judge.PREFILL: 0}
    counts = await _counts(workspace, none)
    failed = judge.both_served("second", await _logs_of(workspace, "second"))
    workspace.control(control_of("no prefill pods", failed, arose=counts == none))
    # Stand-ins never prove what a serving stack does on accelerators, whatever the nodes are.
    return Outcome(
        Environment.EMULATED,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=_LIMITS,
        subject="Deployments of stand-in servers",
    )


async def _deploy(workspace: Workspace, node: Json) -> None:
    scripts = {
        judge.PREFILL: judge.prefill_script(_PORT),
        judge.DECODE: judge.decode_script(_PORT, judge.PREFILL),
    }
    for role, script in scripts.items():
        spec = on_node(pod_spec(workspace, None, 0, ("sh", "-c", script)), node)
        spec.pop("restartPolicy")
        probe = {"tcpSocket": {"port": _PORT}, "periodSeconds": 1}
        spec["containers"][0] |= {"ports": [{"containerPort": _PORT}], "readinessProbe": probe}
        labels = {_ROLE: role}
        template = {"metadata": {"labels": {**labels, **workspace.labels}}, "spec": spec}
        body: Json = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        await workspace.create(SERVICE, role, {"spec": {"selector": labels, "ports": [{"port": _PORT}]}})
        await workspace.create(DEPLOYMENT, role, {"spec": body})


async def _scale(workspace: Workspace, role: str, replicas: int) -> None:
    await workspace.api.merge(DEPLOYMENT, role, {"spec": {"replicas": replicas}}, workspace.namespace)


async def _counts(workspace: Workspace, expected: Mapping[str, int]) -> dict[str, int]:
    """Counts the ready pods of each role, once they are as many as expected."""

    def as_expected(pods: list[Json]) -> bool | None:
        return _ready(pods) == expected or None

    await workspace.until(POD, as_expected)
    return _ready(await workspace.api.list(POD, workspace.namespace))


def _ready(pods: list[Json]) -> dict[str, int]:
    """Pods on their way out are not ready, and still there: both have to be gone."""
    return {
        role: sum(is_ready(pod) for pod in of_role)
        if all("deletionTimestamp" not in pod["metadata"] for pod in of_role)
        else -1
        for role in _ONE_EACH
        for of_role in [named(pods, **{_ROLE: role})]
    }


async def _logs_of(workspace: Workspace, request: str) -> dict[str, str]:
    """The logs of each role after one request, which is repeated until it arrives: a Service is ready later than its pods."""
    until = workspace.clock.monotonic() + workspace.options.patience.seconds
    logs: dict[str, str] = {}
    while workspace.clock.monotonic() < until:
        pods = await workspace.api.list(POD, workspace.namespace)
        decode = [pod["metadata"]["name"] for pod in named(pods, **{_ROLE: judge.DECODE})]
        answer = await _ask(workspace, decode[0], request) if decode else ""
        logs = {role: await _log(workspace, pods, role) for role in _ONE_EACH}
        if answer == str(judge.CACHE_BYTES) or not named(pods, **{_ROLE: judge.PREFILL}):
            break
        await workspace.clock.sleep(Duration.of(seconds=1))
    return logs


async def _ask(workspace: Workspace, pod: str, request: str) -> str:
    path = f"/api/v1/namespaces/{workspace.namespace}/pods/{pod}:{_PORT}/proxy/cgi-bin/decode?{request}"
    try:
        return (await workspace.api.read_text(path)).strip()
    except Error:
        # The server has not begun to listen.
        return ""


async def _log(workspace: Workspace, pods: list[Json], role: str) -> str:
    names = [pod["metadata"]["name"] for pod in named(pods, **{_ROLE: role})]
    return "\n".join([await workspace.api.logs(name, workspace.namespace, "test") for name in names])


DISAGGREGATED_INFERENCE: Final = Check(
    "disaggregated_inference",
    CheckPlan(
        ("2 Deployments", "2 Services"),
        ("a real kubelet", "Services with names", "an image with a shell, httpd and wget"),
        25,
    ),
    _run,
    (
        "create deployments.apps",
        "patch deployments.apps",
        "create services",
        "get pods/proxy",
        "get pods/log",
    ),
)
