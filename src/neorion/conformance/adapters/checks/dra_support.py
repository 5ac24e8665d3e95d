"""dra_support: the scheduler allocates devices of a driver of our own, which any node may use."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import resources_of
from neorion.conformance.adapters.kinds import DEVICE_CLASS, POD, RESOURCE_CLAIM, RESOURCE_SLICE, Json
from neorion.conformance.adapters.pods import make_pod, pod_spec
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.dra import devices_of, got_one_of, serves_all, together, waits
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome

_DRIVER: Final = "conformance.neorion.dev"
# Two small devices and a large one, so that each selector has a known answer.
_SIZES: Final = {"small-0": ("small", "16Gi"), "small-1": ("small", "16Gi"), "large-0": ("large", "80Gi")}
_LIMITS: Final = (
    "The devices belong to no hardware: the scheduler's allocation is shown, not a driver's preparation of devices.",
)


async def _run(workspace: Workspace) -> Outcome:
    resources = await resources_of(workspace, "resource.k8s.io/v1")
    if not workspace.assert_that(serves_all(resources)):
        return Outcome(Environment.SIMULATED, tuple(workspace.assertions), limits=_LIMITS)
    await _offer_devices(workspace)
    await _selects(workspace)
    await _shares(workspace)
    await _waits_and_gets(workspace)
    return Outcome(
        Environment.SIMULATED,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=_LIMITS,
        subject="kube-scheduler",
    )


async def _offer_devices(workspace: Workspace) -> None:
    name = workspace.namespace
    # The pool is named after the run: devices of another run must not be given to this one.
    selector = (
        f'device.driver == "{_DRIVER}" && device.attributes["{_DRIVER}"].run == "{workspace.namespace}"'
    )
    await workspace.create(DEVICE_CLASS, name, {"spec": {"selectors": [{"cel": {"expression": selector}}]}})
    devices = [
        {
            "name": device,
            "attributes": {"model": {"string": model}, "run": {"string": name}},
            "capacity": {"memory": {"value": memory}},
        }
        for device, (model, memory) in _SIZES.items()
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "pool": pool, "allNodes": True, "devices": devices}
    await workspace.create(RESOURCE_SLICE, name, {"spec": spec})


async def _selects(workspace: Workspace) -> None:
    """By attribute, by capacity, and the first choice of several."""
    window = workspace.options.window.seconds
    attributes, capacity = f'device.attributes["{_DRIVER}"]', f'device.capacity["{_DRIVER}"]'
    await _claim(workspace, "by-attribute", _exactly(workspace, f'{attributes}.model == "large"'))
    await _use(workspace, "by-attribute")
    large = [_path(workspace, "large-0")]
    found = await _allocated(workspace, "by-attribute")
    workspace.assert_that(got_one_of("a selector by attribute picks a matching device", found, large))
    await _release(workspace, "by-attribute")
    await _claim(
        workspace, "by-capacity", _exactly(workspace, f'{capacity}.memory.compareTo(quantity("40Gi")) >= 0')
    )
    await _use(workspace, "by-capacity")
    found = await _allocated(workspace, "by-capacity")
    workspace.assert_that(got_one_of("a selector by capacity picks a matching device", found, large))
    await _release(workspace, "by-capacity")
    await _claim(workspace, "no-such", _exactly(workspace, f'{attributes}.model == "none"'))
    await _use(workspace, "no-such")
    found = await _allocated(workspace, "no-such", for_window=True)
    # The same assertion as above on a selector that nothing meets.
    every = [_path(workspace, device) for device in _SIZES]
    control = got_one_of("a selector picks a matching device", found, every)
    workspace.control(control_of("a selector that no device meets", control))
    workspace.assert_that(waits("a claim that no device meets waits", found, window))
    await _release(workspace, "no-such")


async def _shares(workspace: Workspace) -> None:
    await _claim(workspace, "shared", _exactly(workspace, "true"))
    for index in range(2):
        await _use(workspace, "shared", f"shared-{index}")

    def both(pods: list[Json]) -> list[Json] | None:
        users = [
            pod
            for pod in pods
            if pod["metadata"]["name"].startswith("shared-") and pod["spec"].get("nodeName")
        ]
        return users if len(users) == 2 else None

    workspace.assert_that(together(await workspace.until(POD, both) or []))
    for index in range(2):
        await workspace.api.delete(POD, f"shared-{index}", workspace.namespace, at_once=True)
    await _release(workspace, "shared", pods=False)


async def _waits_and_gets(workspace: Workspace) -> None:
    """One claim more than there are devices: it waits, and gets what is released."""
    names = [f"each-{index}" for index in range(len(_SIZES))]
    every = [_path(workspace, device) for device in _SIZES]
    for name in names:
        await _claim(workspace, name, _exactly(workspace, "true"))
        await _use(workspace, name)
        if not workspace.assert_that(
            got_one_of(f"claim {name} gets a device", await _allocated(workspace, name), every)
        ):
            return
    await _claim(workspace, "one-more", _exactly(workspace, "true"))
    await _use(workspace, "one-more")
    found = await _allocated(workspace, "one-more", for_window=True)
    control = got_one_of("a claim gets a device", found, every)
    workspace.control(control_of("one claim more than there are devices", control))
    held = devices_of(await workspace.api.get(RESOURCE_CLAIM, names[0], workspace.namespace))
    await _release(workspace, names[0])
    found = await _allocated(workspace, "one-more")
    workspace.assert_that(got_one_of("a released device is given to the claim that waits", found, held))


def _exactly(workspace: Workspace, expression: str) -> Json:
    selectors = [{"cel": {"expression": expression}}]
    return {"name": "device", "exactly": {"deviceClassName": workspace.namespace, "selectors": selectors}}


async def _claim(workspace: Workspace, name: str, request: Json) -> None:
    await workspace.create(RESOURCE_CLAIM, name, {"spec": {"devices": {"requests": [request]}}})


async def _use(workspace: Workspace, claim: str, pod: str = "") -> None:
    spec = pod_spec(workspace, None, 0)
    spec["resourceClaims"] = [{"name": "device", "resourceClaimName": claim}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "device"}]
    # Also where simulated nodes are tainted: the devices are for all nodes.
    spec["tolerations"] = [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}]
    await make_pod(workspace, pod or claim, spec)


async def _allocated(workspace: Workspace, name: str, *, for_window: bool = False) -> Json | None:
    """The claim once it has devices; otherwise as it is when the time is over."""

    def look(claims: list[Json]) -> Json | None:
        found = [claim for claim in claims if claim["metadata"]["name"] == name and devices_of(claim)]
        return found[0] if found else None

    within = workspace.options.window if for_window else workspace.options.patience
    found = await workspace.until(RESOURCE_CLAIM, look, within)
    return found or await workspace.api.get(RESOURCE_CLAIM, name, workspace.namespace)


async def _release(workspace: Workspace, name: str, *, pods: bool = True) -> None:
    if pods:
        await workspace.api.delete(POD, name, workspace.namespace, at_once=True)

    def free(claims: list[Json]) -> bool | None:
        mine = [claim for claim in claims if claim["metadata"]["name"] == name]
        return not any(claim.get("status", {}).get("reservedFor") for claim in mine) or None

    await workspace.until(RESOURCE_CLAIM, free)
    await workspace.api.delete(RESOURCE_CLAIM, name, workspace.namespace)
    await workspace.until(
        RESOURCE_CLAIM, lambda claims: all(each["metadata"]["name"] != name for each in claims) or None
    )


def _path(workspace: Workspace, device: str) -> str:
    return f"{_DRIVER}/{workspace.namespace}/{device}"


DRA_SUPPORT: Final = Check(
    "dra_support",
    CheckPlan(
        ("DeviceClass", "ResourceSlice with 3 devices", "8 ResourceClaims", "9 Pods"),
        ("Kubernetes 1.34 or newer",),
        45,
    ),
    _run,
    (
        "create deviceclasses.resource.k8s.io",
        "delete deviceclasses.resource.k8s.io",
        "create resourceslices.resource.k8s.io",
        "delete resourceslices.resource.k8s.io",
        "create resourceclaims.resource.k8s.io",
        "watch resourceclaims.resource.k8s.io",
    ),
)
