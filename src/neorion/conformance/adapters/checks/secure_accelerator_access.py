"""secure_accelerator_access: a probe in containers that asked for a device and in some that did not, on one node."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.kinds import NAMESPACE, Json
from neorion.conformance.adapters.pods import make_pod, node_supplies, pod_spec, until_logged
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import access
from neorion.conformance.decide.nodes import NodeSupply
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome
from neorion.keel.base import Denied, Invalid

_EMULATED: Final = "The devices are emulated by /dev/null, which every container may open: the kernel's device controller is not shown."
_ONE_DEVICE: Final = "The node has one free device, so devices of two pods were not compared."


async def _run(workspace: Workspace) -> Outcome:
    profile = workspace.options.profile
    if not profile.device_glob:
        return Outcome(unknown=f"The profile {profile.name} does not say what its device files are called.")
    nodes = [
        node
        for node in await node_supplies(workspace)
        if node.free >= 1 and node.environment is not Environment.SIMULATED
    ]
    if not nodes:
        return Outcome(
            missing=f"No node with a real kubelet has a free {profile.resource}: simulated nodes have no devices."
        )
    node = nodes[0]
    # The control needs a device by hostPath, which stricter levels of pod security forbid.
    level = {"pod-security.kubernetes.io/enforce": "privileged"}
    await workspace.open()
    await workspace.api.merge(NAMESPACE, workspace.namespace, {"metadata": {"labels": level}})
    granted = await _granted(workspace, node)
    numbers = granted.devices if granted is not None else {}
    await _ungranted(workspace, node, numbers)
    await _control(workspace, node)
    limits = [_EMULATED] if access.NULL in numbers.values() else []
    limits += [_ONE_DEVICE] if node.free < 2 else []
    return Outcome(
        node.environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=tuple(limits),
        subject="kubelet",
    )


async def _granted(workspace: Workspace, node: NodeSupply) -> access.Sight | None:
    """A pod with a device for one of its containers, and a second pod beside it."""
    spec = _spec(workspace, node, 1)
    sibling = {**_spec(workspace, node, 0)["containers"][0], "name": "sibling"}
    spec["containers"].append(sibling)
    await make_pod(workspace, "granted", spec)
    first = await _sight(workspace, "granted", "test")
    workspace.assert_that(access.sees_exactly("a container sees the device that it asked for", first, 1))
    if workspace.options.profile.visible_devices:
        workspace.assert_that(access.ids_agree(first, 1))
    beside = await _sight(workspace, "granted", "sibling")
    workspace.assert_that(access.sees_exactly("a container beside it sees none", beside, 0))
    if node.free >= 2 and workspace.options.profile.visible_devices:
        await make_pod(workspace, "granted-too", _spec(workspace, node, 1))
        workspace.assert_that(access.disjoint(first, await _sight(workspace, "granted-too", "test")))
    return first


async def _ungranted(workspace: Workspace, node: NodeSupply, numbers: dict[str, str]) -> None:
    """A pod that did not ask, on the same node, which names all devices to its runtime."""
    profile = workspace.options.profile
    real = tuple(number for number in numbers.values() if number != access.NULL)
    spec = _spec(workspace, node, 0, real)
    container = spec["containers"][0]
    if profile.visible_devices:
        container["env"] = [{"name": profile.visible_devices, "value": "all"}]
    if real:
        # To make a node of the device's number takes root and the capability that containers have by default.
        spec["securityContext"] = {}
        container["securityContext"] = {}
    await make_pod(workspace, "ungranted", spec)
    sight = await _sight(workspace, "ungranted", "test")
    workspace.assert_that(access.sees_exactly("a pod that did not ask sees no device", sight, 0))
    if real:
        workspace.assert_that(access.cannot_open(sight, numbers))


async def _control(workspace: Workspace, node: NodeSupply) -> None:
    """A device handed over behind the framework's back: the probe must see it, or it is blind."""
    spec = _spec(workspace, node, 0)
    path = workspace.options.profile.device_glob.replace("[0-9]*", "9").replace("*", "9")
    spec["volumes"] = [{"name": "device", "hostPath": {"path": "/dev/null", "type": "CharDevice"}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "device", "mountPath": path}]
    try:
        await make_pod(workspace, "control", spec)
        sight = await _sight(workspace, "control", "test")
    except (Denied, Invalid) as error:
        # An admission policy that forbids hostPath leaves the control without its situation.
        workspace.api.note("refused", {"pod": "control", "message": error.sentence})
        sight = access.Sight({}, (), ())
    assertion = access.sees_exactly("a pod that did not ask sees no device", sight, 0)
    workspace.control(control_of("a device handed over by hostPath", assertion, arose=sight is not None))


def _spec(workspace: Workspace, node: NodeSupply, accelerators: int, numbers: tuple[str, ...] = ()) -> Json:
    profile = workspace.options.profile
    script = access.probe_script(profile.device_glob, profile.visible_devices, numbers)
    return pod_spec(workspace, node, accelerators, ("sh", "-c", script))


async def _sight(workspace: Workspace, pod: str, container: str) -> access.Sight | None:
    """Everything that the probe printed, if it has finished."""
    return access.sight_of(await until_logged(workspace, pod, container, access.DONE))


SECURE_ACCELERATOR_ACCESS: Final = Check(
    "secure_accelerator_access",
    CheckPlan(
        ("4 Pods, one with a hostPath",), ("a real kubelet with accelerators", "an image with a shell"), 20
    ),
    _run,
    ("patch namespaces", "get pods/log"),
)
