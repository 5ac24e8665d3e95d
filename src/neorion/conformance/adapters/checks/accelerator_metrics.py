"""accelerator_metrics: what the exporter of a node serves for each of its devices."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import NODE, POD, RESOURCE_SLICE, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import exposition as judge
from neorion.conformance.decide.nodes import environment_of, is_ready, supplies
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Outcome
from neorion.keel.cli.kit import missing_packages
from neorion.keel.kube import Selector

_LIMITS: Final = (
    "Whether the values are true was not shown: that takes load on a device and a look at its neighbours.",
)


async def _run(workspace: Workspace) -> Outcome:
    profile = workspace.options.profile
    names = profile.metrics
    if not names.utilization or not profile.exporters:
        return Outcome(unknown=f"The profile {profile.name} does not say what its exporter is called.")
    if missing_packages("server"):
        return Outcome(missing="The parser is not installed: pip install 'neorion[server]'.")
    running = await _running(workspace)
    if not running:
        return Outcome(missing=f"No exporter runs. Looked for pods with: {', '.join(profile.exporters)}.")
    nodes = {node["metadata"]["name"]: node for node in await workspace.api.list(NODE)}
    offered = supplies(nodes.values(), (), profile.resource, hardware=workspace.options.hardware)
    counts = {each.name: each.allocatable for each in offered}
    pod = next((each for each in running if counts.get(each["spec"].get("nodeName", ""))), None)
    if pod is None:
        return Outcome(missing=f"No exporter runs on a node with {profile.resource}.")
    node = nodes[pod["spec"]["nodeName"]]
    found = judge.read_exposition(await workspace.api.read_text(_path(pod)))
    if workspace.assert_that(judge.readable(found)):
        await _judge(workspace, found, node, counts[node["metadata"]["name"]])
    optional = judge.optional_found(found, names)
    limits = (*_LIMITS, f"Optional metrics that are served: {', '.join(optional) or 'none'}.")
    environment = environment_of(node, hardware=workspace.options.hardware)
    return Outcome(
        environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=limits,
        subject=pod["metadata"]["name"],
    )


async def _running(workspace: Workspace) -> list[Json]:
    """The exporters that run. If there are some and none runs yet, they are waited for."""
    until = workspace.clock.monotonic() + workspace.options.patience.seconds
    while True:
        pods = [
            pod
            for label in workspace.options.profile.exporters
            for pod in await workspace.api.list(POD, select=Selector(labels=label))
        ]
        ready = [pod for pod in pods if is_ready(pod)]
        if ready or not pods or workspace.clock.monotonic() > until:
            return ready
        await workspace.clock.sleep(workspace.pause)


async def _judge(workspace: Workspace, found: judge.Exposition, node: Json, count: int) -> None:
    names = workspace.options.profile.metrics
    for kind, metric in (("utilization", names.utilization), ("memory", names.memory)):
        workspace.assert_that(judge.covers(kind, found, metric, names.device, count))
    ids = await _allocated_ids(workspace, node)
    if ids:
        workspace.assert_that(judge.same_ids(found, names, ids))
    one_less = judge.without_one(found, names)
    assertion = judge.covers("utilization", one_less, names.utilization, names.device, count)
    workspace.control(control_of("a copy without one device", assertion))
    alike = judge.renamed(found, {names.utilization: f"process_{names.utilization}"})
    assertion = judge.covers("utilization", alike, names.utilization, names.device, count)
    workspace.control(control_of("a copy with names that look alike", assertion))


async def _allocated_ids(workspace: Workspace, node: Json) -> set[str]:
    """The ids that the driver publishes for the node; none where it publishes no devices."""
    driver = workspace.options.profile.driver
    if not driver or not await served(workspace, RESOURCE_SLICE):
        return set()
    slices = await workspace.api.list(RESOURCE_SLICE)
    mine = [each["spec"] for each in slices if each["spec"].get("nodeName") == node["metadata"]["name"]]
    devices = [device for spec in mine if spec["driver"] == driver for device in spec.get("devices", ())]
    found = (device.get("attributes", {}).get("uuid", {}).get("string", "") for device in devices)
    return {each for each in found if each}


def _path(pod: Json) -> str:
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports", ())]
    named = [port for port in ports if port.get("name") == "metrics"] or ports
    number = named[0]["containerPort"] if named else 9400
    meta = pod["metadata"]
    path = meta.get("annotations", {}).get("prometheus.io/path", "/metrics")
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:{number}/proxy{path}"


ACCELERATOR_METRICS: Final = Check(
    "accelerator_metrics",
    CheckPlan(("nothing",), ("an exporter whose pods the profile names, such as DCGM's",), 5),
    _run,
    ("list pods", "get pods/proxy", "list resourceslices.resource.k8s.io"),
)
