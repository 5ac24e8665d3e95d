"""driver_runtime_management: the driver version that a node advertises, and the one that a container reads."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import NODE, RESOURCE_SLICE
from neorion.conformance.adapters.pods import make_pod, node_supplies, pod_spec, until_logged
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import access, drivers
from neorion.conformance.decide.nodes import NodeSupply
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome

_DONE: Final = "version read"
_LABEL_ONLY: Final = (
    "The driver publishes its version as a label of nodes: attributes of devices were not compared."
)


async def _run(workspace: Workspace) -> Outcome:
    profile = workspace.options.profile
    if not profile.version.file or not profile.device_glob:
        return Outcome(
            unknown=f"The profile {profile.name} does not say where a container reads the version."
        )
    supplies = {
        each.name: each
        for each in await node_supplies(workspace)
        if each.environment is not Environment.SIMULATED and each.free >= 1
    }
    if not supplies:
        return Outcome(
            missing=f"No node with a real kubelet has a free {profile.resource}: simulated nodes have no drivers."
        )
    slices = await workspace.api.list(RESOURCE_SLICE) if await served(workspace, RESOURCE_SLICE) else []
    nodes = [node for node in await workspace.api.list(NODE) if node["metadata"]["name"] in supplies]
    found = [
        (node, advertised) for node in nodes if (advertised := drivers.advertised(node, slices, profile))
    ]
    if not found:
        return Outcome(
            missing="No node advertises the version of its driver: neither by attributes of devices nor by a label."
        )
    node, advertised = found[0]
    supply = supplies[node["metadata"]["name"]]
    await _compare(workspace, supply, advertised)
    return Outcome(
        supply.environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=() if advertised.devices is not None else (_LABEL_ONLY,),
        subject=advertised.source,
    )


async def _compare(workspace: Workspace, node: NodeSupply, advertised: drivers.Advertised) -> None:
    workspace.assert_that(drivers.agree(advertised))
    if advertised.devices is not None:
        workspace.assert_that(drivers.counted(advertised, node.allocatable))
    profile = workspace.options.profile
    script = f"echo \"version $(cat {profile.version.file})\"\necho '{_DONE}'\nsleep 3600"
    await make_pod(workspace, "reader", pod_spec(workspace, node, 0, ("sh", "-c", script)))
    log = await until_logged(workspace, "reader", "test", _DONE)
    seen = next(
        (line.removeprefix("version ") for line in log.splitlines() if line.startswith("version ")), ""
    )
    workspace.assert_that(drivers.same_version(advertised.versions, seen.strip()))
    other = drivers.same_version([f"{each}-changed" for each in advertised.versions], seen.strip())
    workspace.control(control_of("a copy with another version", other, arose=bool(seen.strip())))
    await _runtime(workspace, node)


async def _runtime(workspace: Workspace, node: NodeSupply) -> None:
    """The runtime of the node is configured if it gives a device to a container that asks for one."""
    profile = workspace.options.profile
    probe = ("sh", "-c", access.probe_script(profile.device_glob, profile.visible_devices))
    await make_pod(workspace, "granted", pod_spec(workspace, node, 1, probe))
    sight = access.sight_of(await until_logged(workspace, "granted", "test", access.DONE))
    workspace.assert_that(access.sees_exactly("the runtime gives a device to a container", sight, 1))
    await make_pod(workspace, "ungranted", pod_spec(workspace, node, 0, probe))
    sight = access.sight_of(await until_logged(workspace, "ungranted", "test", access.DONE))
    without = access.sees_exactly("the runtime gives a device to a container", sight, 1)
    workspace.control(control_of("a container that asks for none", without, arose=sight is not None))


DRIVER_RUNTIME_MANAGEMENT: Final = Check(
    "driver_runtime_management",
    CheckPlan(
        ("3 Pods",),
        ("a real kubelet with accelerators", "a driver that advertises its version", "an image with a shell"),
        15,
    ),
    _run,
    ("list resourceslices.resource.k8s.io", "get pods/log"),
)
