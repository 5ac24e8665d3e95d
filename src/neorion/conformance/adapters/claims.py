"""Devices that belong to a run, the claims for them, and the pods that use those claims."""

from collections.abc import Mapping, Sequence
from typing import Final

from neorion.conformance.adapters.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE, Json
from neorion.conformance.adapters.pods import make_pod, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.dra import devices_of
from neorion.conformance.decide.nodes import is_refused, takes_pods
from neorion.keel.base import NotFound

# The driver that the run itself stands for.
DRIVER: Final = "conformance.neorion.dev"
# Simulated nodes carry it where there are real ones, too.
_TOLERATIONS: Final = [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}]


async def offer_devices(workspace: Workspace, devices: Sequence[Json], counters: Sequence[Json] = ()) -> None:
    """Publishes devices of one node, and a class that selects those of this run alone."""
    name = workspace.namespace
    # Of one node: pods that share a device can only be placed there.
    nodes = [each["metadata"]["name"] for each in await workspace.api.list(NODE) if takes_pods(each)]
    if not nodes:
        raise NotFound("conformance.no_node", "No ready node takes pods without accelerators.")
    selector = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].run == "{name}"'
    await workspace.create(DEVICE_CLASS, name, {"spec": {"selectors": [{"cel": {"expression": selector}}]}})
    marked = [
        {**each, "attributes": {**each.get("attributes", {}), "run": {"string": name}}} for each in devices
    ]
    # A slice holds devices or the counters that they share, never both.
    contents: list[Json] = [{"devices": marked}, *([{"sharedCounters": list(counters)}] if counters else [])]
    for index, content in enumerate(contents):
        # The pool is named after the run: devices of another run must not be given to this one.
        pool = {"name": name, "generation": 1, "resourceSliceCount": len(contents)}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": nodes[0], **content}
        await workspace.create(RESOURCE_SLICE, f"{name}-{index}"[:63], {"spec": spec})


def one_of(device_class: str, expression: str = "true", **more: object) -> Json:
    """A request for exactly one device of a class that an expression selects."""
    selectors = [{"cel": {"expression": expression}}]
    return {
        "name": "device",
        "exactly": {"deviceClassName": device_class, "selectors": selectors, **more},
    }


async def claim(workspace: Workspace, name: str, request: Json) -> None:
    await workspace.create(RESOURCE_CLAIM, name, {"spec": {"devices": {"requests": [request]}}})


async def use(
    workspace: Workspace, name: str, pod: str = "", placed: Mapping[str, object] | None = None
) -> None:
    """A pod that uses a claim: allocation waits for one."""
    spec: Json = {**pod_spec(workspace, None, 0), "tolerations": _TOLERATIONS, **(placed or {})}
    spec["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "device"}]
    await make_pod(workspace, pod or name, spec)


async def claim_and_use(workspace: Workspace, name: str, request: Json) -> Json | None:
    """The claim once it is allocated, or as it is when the patience is over."""
    await claim(workspace, name, request)
    await use(workspace, name)
    return await allocated(workspace, name)


async def allocated(workspace: Workspace, name: str, *, for_window: bool = False) -> Json | None:
    """The claim once it has devices; otherwise as it is when the time is over."""

    def with_devices(claims: list[Json]) -> Json | None:
        found = [each for each in claims if each["metadata"]["name"] == name and devices_of(each)]
        return found[0] if found else None

    within = workspace.options.window if for_window else workspace.options.patience
    found = await workspace.until(RESOURCE_CLAIM, with_devices, within)
    return found or await workspace.api.get(RESOURCE_CLAIM, name, workspace.namespace)


async def is_unschedulable(workspace: Workspace, pod: str) -> bool:
    """Returns true once the scheduler has found no node for a pod. A pod that it never saw proves nothing."""

    def refused(pods: list[Json]) -> bool | None:
        return any(each["metadata"]["name"] == pod and is_refused(each) for each in pods) or None

    return await workspace.until(POD, refused, workspace.options.window) is True


async def release(workspace: Workspace, name: str, *, pods: bool = True) -> None:
    """Deletes the pod of a claim and the claim, and returns when both are gone."""
    if pods:
        await workspace.api.delete(POD, name, workspace.namespace, at_once=True)

    def unreserved(claims: list[Json]) -> bool | None:
        mine = [each for each in claims if each["metadata"]["name"] == name]
        return not any(each.get("status", {}).get("reservedFor") for each in mine) or None

    await workspace.until(RESOURCE_CLAIM, unreserved)
    await workspace.api.delete(RESOURCE_CLAIM, name, workspace.namespace)
    await workspace.until(
        RESOURCE_CLAIM, lambda claims: all(each["metadata"]["name"] != name for each in claims) or None
    )


def device_path(workspace: Workspace, device: str) -> str:
    return f"{DRIVER}/{workspace.namespace}/{device}"
