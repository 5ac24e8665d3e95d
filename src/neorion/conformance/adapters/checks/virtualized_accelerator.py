"""virtualized_accelerator: virtual devices by the same resource as physical ones, and against the same quota."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.claims import is_unschedulable
from neorion.conformance.adapters.kinds import NODE, POD, Json, kind
from neorion.conformance.adapters.pods import make_pod, node_supplies, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.nodes import NodeSupply
from neorion.conformance.decide.quota import refused_by_quota
from neorion.conformance.decide.scaling import is_placed
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome
from neorion.keel.base import Denied, QuotaExceeded

_QUOTA: Final = kind("ResourceQuota", "resourcequotas")
_LIMITS: Final = ("That a virtual device computes was not shown.",)


async def _run(workspace: Workspace) -> Outcome:
    profile = workspace.options.profile
    if not profile.virtual:
        return Outcome(unknown=f"The profile {profile.name} does not say how nodes mark virtual devices.")
    marked = {
        node["metadata"]["name"]
        for node in await workspace.api.list(NODE)
        if node["metadata"].get("labels", {}).get(profile.virtual) == "true"
    }
    nodes = [node for node in await node_supplies(workspace) if node.name in marked and node.free >= 1]
    if not nodes:
        return Outcome(
            missing=f"No ready node with the label {profile.virtual}=true has a free {profile.resource}."
        )
    node = nodes[0]
    await _virtual(workspace, node)
    limits = _LIMITS if node.environment is not Environment.HARDWARE else ()
    return Outcome(
        node.environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=limits,
        subject=profile.virtual,
    )


async def _virtual(workspace: Workspace, node: NodeSupply) -> None:
    resource = workspace.options.profile.resource
    await make_pod(workspace, "virtual", pod_spec(workspace, node, 1))
    words = "a pod gets a virtual device by the same resource as a physical one"
    workspace.assert_that(is_placed(words, await _placed(workspace, "virtual"), node.name))
    hard = {f"requests.{resource}": "1"}
    await workspace.create(_QUOTA, "accelerators", {"spec": {"hard": hard}})
    await workspace.until(_QUOTA, lambda quotas: _used(quotas, f"requests.{resource}") or None)
    words = "a virtual device counts against the same quota"
    message = await _refusal(workspace, "beyond-quota", pod_spec(workspace, node, 1))
    workspace.assert_that(refused_by_quota(words, message))
    plain = refused_by_quota(words, await _refusal(workspace, "no-device", pod_spec(workspace, node, 0)))
    workspace.control(control_of("a pod without a device", plain))
    # Its virtual device is one that nothing offers.
    await workspace.api.delete(_QUOTA, "accelerators", workspace.namespace)
    spec = pod_spec(workspace, node, 0)
    spec["containers"][0]["resources"]["limits"][f"{resource}-absent"] = "1"
    await make_pod(workspace, "absent", spec)
    pod = await _placed(workspace, "absent", for_window=True)
    arose = bool(pod["spec"].get("nodeName")) or await is_unschedulable(workspace, "absent")
    absent = is_placed("a pod gets a device", pod, node.name)
    workspace.control(control_of("a resource that does not exist", absent, arose=arose))


async def _placed(workspace: Workspace, name: str, *, for_window: bool = False) -> Json:
    """The pod once it has a node; otherwise as it is when the time is over."""

    def with_node(pods: list[Json]) -> Json | None:
        mine = (pod for pod in pods if pod["metadata"]["name"] == name and pod["spec"].get("nodeName"))
        return next(mine, None)

    within = workspace.options.window if for_window else workspace.options.patience
    found = await workspace.until(POD, with_node, within)
    return found or await workspace.api.get(POD, name, workspace.namespace)


def _used(quotas: list[Json], resource: str) -> bool:
    """Returns true once the quota has counted the device."""
    return any(quota.get("status", {}).get("used", {}).get(resource) == "1" for quota in quotas)


async def _refusal(workspace: Workspace, name: str, spec: Json) -> str:
    """The API server's message against a pod; empty if it took the pod."""
    try:
        await make_pod(workspace, name, spec)
    except (Denied, QuotaExceeded) as error:
        return error.sentence
    return ""


VIRTUALIZED_ACCELERATOR: Final = Check(
    "virtualized_accelerator",
    CheckPlan(
        ("4 Pods", "ResourceQuota"),
        ("a node with virtual devices, marked as the profile says",),
        15,
    ),
    _run,
    (
        "get pods",
        "create resourcequotas",
        "delete resourcequotas",
        "watch resourcequotas",
    ),
)
