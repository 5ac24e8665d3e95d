"""high_performance_networking: interfaces that a driver publishes, and a pod that attaches to one by a claim."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.claims import allocated, claim, is_unschedulable, one_of, use
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_SLICE, Json
from neorion.conformance.adapters.pods import make_pod, on_node, pod_spec, until_logged
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import interfaces as judge
from neorion.conformance.decide import sandbox
from neorion.conformance.decide.dra import devices_of
from neorion.conformance.decide.nodes import environment_of
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome

_LIMITS: Final = ("Neither bandwidth nor RDMA was measured.",)
_SIMULATED: Final = "Simulated nodes attach no interface: the discovery and the placement were shown."


async def _run(workspace: Workspace) -> Outcome:
    if not await served(workspace, RESOURCE_SLICE):
        return Outcome(missing="Dynamic resource allocation (resource.k8s.io/v1) is not served.")
    slices = [
        each for each in await workspace.api.list(RESOURCE_SLICE) if each["spec"]["driver"] in judge.DRIVERS
    ]
    found = judge.interfaces(slices)
    if not found:
        return Outcome(
            missing=f"No driver publishes network interfaces as devices. Looked for: {', '.join(judge.DRIVERS)}."
        )
    total = sum(len(each["spec"].get("devices", ())) for each in slices)
    workspace.assert_that(judge.published(len(found), total))
    nodes = {node["metadata"]["name"]: node for node in await workspace.api.list(NODE)}
    environment = environment_of(nodes[found[0].node], hardware=workspace.options.hardware)
    simulated = environment is Environment.SIMULATED
    await _attach(workspace, found, nodes[found[0].node], simulated=simulated)
    return Outcome(
        environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=(*_LIMITS, _SIMULATED) if simulated else _LIMITS,
        subject=found[0].driver,
    )


async def _attach(workspace: Workspace, found: list[judge.Interface], node: Json, *, simulated: bool) -> None:
    one = found[0]
    selector = f'device.driver == "{one.driver}"'
    body = {"spec": {"selectors": [{"cel": {"expression": selector}}]}}
    await workspace.create(DEVICE_CLASS, workspace.namespace, body)
    probe = on_node(pod_spec(workspace, None, 0, ("sh", "-c", sandbox.probe_script())), node)
    placed = {"containers": probe["containers"], "tolerations": probe["tolerations"]}
    await claim(workspace, "attached", one_of(workspace.namespace, one.selector))
    await use(workspace, "attached", placed=placed)
    taken = await allocated(workspace, "attached")
    pod = await workspace.until(POD, lambda pods: _with_node(pods, "attached"))
    pod = pod or await workspace.api.get(POD, "attached", workspace.namespace)
    workspace.assert_that(judge.attached_where_it_is(pod, taken, judge.like(found, one)))
    if not simulated:
        workspace.assert_that(judge.has_second_interface(await _interfaces(workspace, "attached")))
        await make_pod(workspace, "plain", probe)
        seen = await _interfaces(workspace, "plain")
        plain = judge.has_second_interface(seen)
        workspace.control(control_of("a pod without a claim", plain, arose=seen is not None))
    await claim(workspace, "absent", one_of(workspace.namespace, f"{one.selector} && false"))
    await use(workspace, "absent", placed=placed)
    waiting = await allocated(workspace, "absent", for_window=True)
    pod = await workspace.api.get(POD, "absent", workspace.namespace)
    arose = bool(devices_of(waiting or {})) or await is_unschedulable(workspace, "absent")
    absent = judge.attached_where_it_is(pod, waiting, found)
    workspace.control(control_of("a claim for a characteristic that no interface has", absent, arose=arose))


def _with_node(pods: list[Json], name: str) -> Json | None:
    mine = (pod for pod in pods if pod["metadata"]["name"] == name and pod["spec"].get("nodeName"))
    return next(mine, None)


async def _interfaces(workspace: Workspace, pod: str) -> tuple[str, ...] | None:
    kernel = sandbox.kernel_of(await until_logged(workspace, pod, "test", sandbox.DONE))
    return kernel.interfaces if kernel is not None else None


HIGH_PERFORMANCE_NETWORKING: Final = Check(
    "high_performance_networking",
    CheckPlan(
        ("DeviceClass", "2 ResourceClaims", "3 Pods"),
        ("a driver that publishes network interfaces as devices, such as DRANET",),
        20,
    ),
    _run,
    (
        "get pods",
        "get pods/log",
        "list resourceslices.resource.k8s.io",
        "create deviceclasses.resource.k8s.io",
        "delete deviceclasses.resource.k8s.io",
        "create resourceclaims.resource.k8s.io",
        "get resourceclaims.resource.k8s.io",
        "watch resourceclaims.resource.k8s.io",
    ),
)
