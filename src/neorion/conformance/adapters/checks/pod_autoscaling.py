"""pod_autoscaling: the HorizontalPodAutoscaler on pods with accelerators, by a custom metric that is set."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.kinds import AUTOSCALER, DEPLOYMENT, POD, SERVICE, Json, kind
from neorion.conformance.adapters.pods import named, node_supplies, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import scaling
from neorion.conformance.decide.nodes import NodeSupply, requested, tolerations, worst
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome
from neorion.keel.base import Duration, Error
from neorion.keel.clock import Clock

_API_SERVICE: Final = kind("APIService", "apiservices", "apiregistration.k8s.io/v1", namespaced=False)
_GROUP: Final = "custom.metrics.k8s.io/v1beta2"
_SERVED: Final = f"v1beta2.{_GROUP.partition('/')[0]}"
# On an APIService whose metrics are the annotations of the object that they describe.
SETTABLE: Final = "conformance.neorion.dev/metrics-from-annotations"
METRIC: Final = "conformance_queue_length"
_ANNOTATION: Final = f"metrics.conformance.neorion.dev/{METRIC}"
_TARGET: Final = 10
_MOST: Final = 3
_APP: Final = {"conformance.neorion.dev/group": "scaled"}
# The controller looks every 15 s unless it was told otherwise.
_SYNCS: Final = Duration.of(seconds=20)


async def _run(workspace: Workspace) -> Outcome:
    services = {each["metadata"]["name"]: each for each in await workspace.api.list(_API_SERVICE)}
    if _SERVED not in services:
        return Outcome(
            missing=f"The custom metrics API ({_GROUP}) is not served: no metrics adapter is installed."
        )
    if services[_SERVED]["metadata"].get("annotations", {}).get(SETTABLE) != "true":
        return Outcome(missing="The metrics adapter has no metric that this check can set.")
    nodes = await node_supplies(workspace)
    resource = workspace.options.profile.resource
    if sum(node.free for node in nodes) < _MOST:
        return Outcome(missing=f"There are no {_MOST} free {resource} for the pods to grow into.")
    await _make_target(workspace, nodes)
    if not await _metric_served(workspace):
        return _outcome(workspace, nodes)
    await _stays_at_target(workspace)
    await _scales_up(workspace)
    await _scales_down(workspace)
    await _wrong_name(workspace)
    return _outcome(workspace, nodes)


def _outcome(workspace: Workspace, nodes: list[NodeSupply]) -> Outcome:
    limits = ("The metric is set by the check, not measured on an accelerator.",)
    environment = worst(node.environment for node in nodes)
    return Outcome(
        environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=limits,
        subject="HorizontalPodAutoscaler",
    )


async def _make_target(workspace: Workspace, nodes: list[NodeSupply]) -> None:
    spec = pod_spec(workspace, None, 1)
    spec["tolerations"] = [
        dict(pairs) for pairs in {tuple(each.items()) for node in nodes for each in tolerations(node.taints)}
    ]
    spec.pop("restartPolicy")
    template = {"metadata": {"labels": {**_APP, **workspace.labels}}, "spec": spec}
    body: Json = {"spec": {"replicas": 1, "selector": {"matchLabels": _APP}, "template": template}}
    await workspace.create(DEPLOYMENT, "scaled", body)
    await workspace.create(SERVICE, "scaled", {"spec": {"selector": _APP, "ports": [{"port": 80}]}})
    await _set(workspace, _TARGET)
    await _make_autoscaler(workspace, "scaled", METRIC)
    await workspace.until(POD, lambda pods: len(_holding(workspace, pods)) == 1 or None)


async def _make_autoscaler(workspace: Workspace, name: str, metric: str) -> None:
    described = {"apiVersion": "v1", "kind": "Service", "name": "scaled"}
    target = {"type": "Value", "value": str(_TARGET)}
    metrics = [
        {
            "type": "Object",
            "object": {"describedObject": described, "metric": {"name": metric}, "target": target},
        }
    ]
    quick = {
        "stabilizationWindowSeconds": 0,
        "policies": [{"type": "Pods", "value": _MOST, "periodSeconds": 15}],
    }
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
        "minReplicas": 1,
        "maxReplicas": _MOST,
        "metrics": metrics,
        "behavior": {"scaleUp": quick, "scaleDown": quick},
    }
    await workspace.create(AUTOSCALER, name, {"spec": spec})


async def _set(workspace: Workspace, value: int) -> None:
    await workspace.api.merge(
        SERVICE, "scaled", {"metadata": {"annotations": {_ANNOTATION: str(value)}}}, workspace.namespace
    )


async def _metric_served(workspace: Workspace) -> bool:
    path = f"/apis/{_GROUP}/namespaces/{workspace.namespace}/services/scaled/{METRIC}"
    items: list[Json] = []
    until = workspace.clock.monotonic() + workspace.options.patience.seconds
    while not items and workspace.clock.monotonic() < until:
        try:
            items = (await workspace.api.read(path)).get("items", [])
        except Error:
            await workspace.clock.sleep(workspace.pause)
    return workspace.assert_that(scaling.metric_is(items, str(_TARGET)))


async def _stays_at_target(workspace: Workspace) -> None:
    """At its target nothing moves; the assertion that it grew must fail here."""
    counts = await _counts(workspace, _SYNCS)
    workspace.assert_that(scaling.stays_at("at the target nothing changes", counts, 1, _SYNCS.seconds))
    grown = scaling.scaled_to("replicas grow with the metric", counts[-1], _MOST, _SYNCS.seconds)
    workspace.control(control_of("the metric at its target", grown))


async def _scales_up(workspace: Workspace) -> None:
    expected = scaling.desired(1, _TARGET * _MOST, _TARGET, _MOST)
    await _set(workspace, _TARGET * _MOST)
    replicas, seconds = await _reaches(workspace, expected)
    workspace.assert_that(scaling.scaled_to("replicas grow with the metric", replicas, expected, seconds))
    pods = await workspace.until(POD, lambda found: _enough(workspace, found, expected))
    there = named(await workspace.api.list(POD, workspace.namespace), **_APP)
    workspace.assert_that(scaling.hold_accelerators(there, expected, len(pods or _holding(workspace, there))))


async def _scales_down(workspace: Workspace) -> None:
    await _set(workspace, 1)
    replicas, seconds = await _reaches(workspace, 1)
    workspace.assert_that(scaling.scaled_to("replicas return to the least", replicas, 1, seconds))


async def _wrong_name(workspace: Workspace) -> None:
    """The same autoscaler with a metric that does not exist, at a value that would make it grow."""
    await workspace.api.delete(AUTOSCALER, "scaled", workspace.namespace)
    await _make_autoscaler(workspace, "wrong", f"{METRIC}_absent")
    await _set(workspace, _TARGET * _MOST)
    counts = await _counts(workspace, _SYNCS)
    grown = scaling.scaled_to("replicas grow with the metric", counts[-1], _MOST, _SYNCS.seconds)
    workspace.control(control_of("a metric that does not exist", grown))


async def _counts(workspace: Workspace, span: Duration) -> list[int]:
    counts: list[int] = []

    def search(found: list[Json]) -> None:
        counts.extend(
            int(each["spec"].get("replicas", 0)) for each in found if each["metadata"]["name"] == "scaled"
        )

    await workspace.until(DEPLOYMENT, search, span)
    return counts or [0]


async def _reaches(workspace: Workspace, expected: int) -> tuple[int, float]:
    clock: Clock = workspace.clock
    began = clock.monotonic()

    def search(found: list[Json]) -> int | None:
        replicas = [
            int(each["spec"].get("replicas", 0)) for each in found if each["metadata"]["name"] == "scaled"
        ]
        return expected if replicas == [expected] else None

    # Two looks of the controller, and what it takes to act.
    reached = await workspace.until(
        DEPLOYMENT, search, Duration.of(seconds=workspace.options.patience.seconds)
    )
    if reached is None:
        thing = await workspace.api.get(DEPLOYMENT, "scaled", workspace.namespace)
        reached = int(thing["spec"].get("replicas", 0))
    return reached, clock.monotonic() - began


def _holding(workspace: Workspace, pods: list[Json]) -> list[Json]:
    resource = workspace.options.profile.resource
    return [
        pod for pod in named(pods, **_APP) if pod["spec"].get("nodeName") and requested(pod, resource) == 1
    ]


def _enough(workspace: Workspace, pods: list[Json], count: int) -> list[Json] | None:
    holding = _holding(workspace, pods)
    return holding if len(holding) == count else None


POD_AUTOSCALING: Final = Check(
    "pod_autoscaling",
    CheckPlan(
        ("Deployment", "Service", "2 HorizontalPodAutoscalers"),
        ("the custom metrics API with a metric that can be set", "three free accelerators"),
        90,
    ),
    _run,
    (
        "list apiservices.apiregistration.k8s.io",
        "create deployments.apps",
        "watch deployments.apps",
        "create services",
        "patch services",
        "create horizontalpodautoscalers.autoscaling",
        "delete horizontalpodautoscalers.autoscaling",
    ),
)
