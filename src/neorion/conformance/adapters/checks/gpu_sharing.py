"""gpu_sharing by dynamic resource allocation: parts of a device by shared counters, and one device for many claims."""

from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.claims import (
    DRIVER,
    allocated,
    claim,
    claim_and_use,
    device_path,
    is_unschedulable,
    offer_devices,
    one_of,
    release,
    use,
)
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import RESOURCE_SLICE, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.dra import devices_of, got_one_of, waits
from neorion.conformance.decide.sharing import all_share, each_has_a_share
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome

# A device of 80 Gi in four parts. There is a part more than fits, so only the counters hold it back.
_WHOLE: Final = "80Gi"
_PART: Final = "20Gi"
_PARTS: Final = 4
_LIMITS: Final = (
    "The devices belong to no hardware: the accounting of shares is shown, not that shares of one device run at once.",
)


async def _run(workspace: Workspace) -> Outcome:
    if not await served(workspace, RESOURCE_SLICE):
        return Outcome(missing="Dynamic resource allocation (resource.k8s.io/v1) is not served.")
    await offer_devices(workspace, _devices(), _counters())
    parts, sharing = await _kept_fields(workspace)
    if not parts and not sharing:
        return Outcome(
            missing="The cluster keeps neither shared counters nor consumable capacity of devices: both are on from 1.36."
        )
    if parts:
        await _parts(workspace)
    if sharing:
        await _shares(workspace)
    return Outcome(
        Environment.SIMULATED,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=_LIMITS,
        subject=", ".join(
            name for name, there in (("partitions", parts), ("consumable capacity", sharing)) if there
        ),
    )


def _devices() -> list[Json]:
    parts = [_device(f"part-{index}", "part", _PART) for index in range(_PARTS + 1)]
    shared: Json = {
        **_device("shared", "shared", _WHOLE),
        "allowMultipleAllocations": True,
        "consumesCounters": [],
        "capacity": {
            "memory": {
                "value": _WHOLE,
                "requestPolicy": {"default": _PART, "validRange": {"min": "1Gi", "max": _WHOLE}},
            }
        },
    }
    return [_device("whole", "whole", _WHOLE), *parts, shared]


def _device(name: str, model: str, memory: str) -> Json:
    used = [{"counterSet": "device", "counters": {"memory": {"value": memory}}}]
    return {"name": name, "attributes": {"model": {"string": model}}, "consumesCounters": used}


def _counters() -> list[Json]:
    return [{"name": "device", "counters": {"memory": {"value": _WHOLE}}}]


async def _kept_fields(workspace: Workspace) -> tuple[bool, bool]:
    """Which of the two kinds of sharing the API server has kept: it drops fields whose feature is off."""
    slices = [
        each["spec"]
        for each in await workspace.api.list(RESOURCE_SLICE)
        if each["spec"]["pool"]["name"] == workspace.namespace
    ]
    devices = [device for spec in slices for device in spec.get("devices", ())]
    counted = any(spec.get("sharedCounters") for spec in slices)
    return (
        counted and any(device.get("consumesCounters") for device in devices),
        any(device.get("allowMultipleAllocations") for device in devices),
    )


async def _parts(workspace: Workspace) -> None:
    names = [f"part-{index}" for index in range(_PARTS)]
    part = _request(workspace, "part")
    claims = [await claim_and_use(workspace, name, part) for name in names]
    every = [device_path(workspace, f"part-{index}") for index in range(_PARTS + 1)]
    workspace.assert_that(each_has_a_share("parts of one device are given out together", claims, every))
    await _one_more(workspace, "part-more", part, every)
    # While the parts are held: the whole overlaps with each of them.
    await claim(workspace, "whole", _request(workspace, "whole"))
    await use(workspace, "whole")
    found = await allocated(workspace, "whole", for_window=True)
    window = workspace.options.window.seconds
    workspace.assert_that(waits("the whole device waits while parts of it are held", found, window))
    await release(workspace, "whole")
    await release(workspace, names[0])
    found = await allocated(workspace, "part-more")
    workspace.assert_that(
        got_one_of("a part that was released is given to the claim that waits", found, every)
    )
    for name in (*names[1:], "part-more"):
        await release(workspace, name)


async def _shares(workspace: Workspace) -> None:
    names = [f"share-{index}" for index in range(_PARTS)]
    share = _request(workspace, "shared", capacity={"requests": {"memory": _PART}})
    claims = [await claim_and_use(workspace, name, share) for name in names]
    device = device_path(workspace, "shared")
    workspace.assert_that(all_share("claims share one device by capacity", claims, device))
    await _one_more(workspace, "share-more", share, [device])


async def _one_more(workspace: Workspace, name: str, request: Json, every: list[str]) -> None:
    """One share more than the device has: it waits, and the scheduler says so."""
    await claim(workspace, name, request)
    await use(workspace, name)
    found = await allocated(workspace, name, for_window=True)
    control = got_one_of("a claim gets a share", found, every)
    # An allocation is a fault, and no reason to doubt the control.
    arose = bool(devices_of(found or {})) or await is_unschedulable(workspace, name)
    kind = name.removesuffix("-more")
    workspace.control(control_of(f"one {kind} more than the device has", control, arose=arose))
    window = workspace.options.window.seconds
    workspace.assert_that(waits(f"one {kind} more than the device has waits", found, window))


def _request(workspace: Workspace, model: str, **more: object) -> Json:
    return one_of(workspace.namespace, f'device.attributes["{DRIVER}"].model == "{model}"', **more)


GPU_SHARING: Final = Check(
    "gpu_sharing",
    CheckPlan(
        ("DeviceClass", "2 ResourceSlices with 7 devices", "11 ResourceClaims", "11 Pods"),
        ("Kubernetes 1.36 or newer, or its features for sharing devices",),
        40,
    ),
    _run,
    (
        "create deviceclasses.resource.k8s.io",
        "delete deviceclasses.resource.k8s.io",
        "list resourceslices.resource.k8s.io",
        "create resourceslices.resource.k8s.io",
        "delete resourceslices.resource.k8s.io",
        "create resourceclaims.resource.k8s.io",
        "get resourceclaims.resource.k8s.io",
        "delete resourceclaims.resource.k8s.io",
        "watch resourceclaims.resource.k8s.io",
    ),
)
