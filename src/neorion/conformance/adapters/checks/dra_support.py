"""dra_support: the scheduler allocates devices of a driver of our own, which belong to one node."""

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
from neorion.conformance.adapters.groups import resources_of
from neorion.conformance.adapters.kinds import POD, RESOURCE_CLAIM, Json
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide.dra import devices_of, got_one_of, serves_all, together, waits
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome

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
    devices = [
        {
            "name": device,
            "attributes": {"model": {"string": model}},
            "capacity": {"memory": {"value": memory}},
        }
        for device, (model, memory) in _SIZES.items()
    ]
    await offer_devices(workspace, devices)


async def _selects(workspace: Workspace) -> None:
    """By attribute, by capacity, and the first of several alternatives."""
    window = workspace.options.window.seconds
    attributes, capacity = f'device.attributes["{DRIVER}"]', f'device.capacity["{DRIVER}"]'
    await claim(workspace, "by-attribute", one_of(workspace.namespace, f'{attributes}.model == "large"'))
    await use(workspace, "by-attribute")
    large = [device_path(workspace, "large-0")]
    found = await allocated(workspace, "by-attribute")
    workspace.assert_that(got_one_of("a selector by attribute picks a matching device", found, large))
    await release(workspace, "by-attribute")
    await claim(
        workspace,
        "by-capacity",
        one_of(workspace.namespace, f'{capacity}.memory.compareTo(quantity("40Gi")) >= 0'),
    )
    await use(workspace, "by-capacity")
    found = await allocated(workspace, "by-capacity")
    workspace.assert_that(got_one_of("a selector by capacity picks a matching device", found, large))
    await release(workspace, "by-capacity")
    alternatives = (f'{attributes}.model == "none"', f'{attributes}.model == "large"', "true")
    choices = [
        {**one_of(workspace.namespace, each)["exactly"], "name": f"choice-{index}"}
        for index, each in enumerate(alternatives)
    ]
    found = await claim_and_use(workspace, "first", {"name": "device", "firstAvailable": choices})
    workspace.assert_that(got_one_of("the first alternative that there is is taken", found, large))
    await release(workspace, "first")
    await claim(workspace, "no-such", one_of(workspace.namespace, f'{attributes}.model == "none"'))
    await use(workspace, "no-such")
    found = await allocated(workspace, "no-such", for_window=True)
    # The same assertion as above on a selector that nothing meets.
    every = [device_path(workspace, device) for device in _SIZES]
    control = got_one_of("a selector picks a matching device", found, every)
    arose = bool(devices_of(found or {})) or await is_unschedulable(workspace, "no-such")
    workspace.control(control_of("a selector that no device meets", control, arose=arose))
    workspace.assert_that(waits("a claim that no device meets waits", found, window))
    await release(workspace, "no-such")


async def _shares(workspace: Workspace) -> None:
    await claim(workspace, "shared", one_of(workspace.namespace, "true"))
    for index in range(2):
        await use(workspace, "shared", f"shared-{index}")

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
    await release(workspace, "shared", pods=False)


async def _waits_and_gets(workspace: Workspace) -> None:
    """One claim more than there are devices: it waits, and gets what is released."""
    names = [f"each-{index}" for index in range(len(_SIZES))]
    every = [device_path(workspace, device) for device in _SIZES]
    for name in names:
        await claim(workspace, name, one_of(workspace.namespace, "true"))
        await use(workspace, name)
        if not workspace.assert_that(
            got_one_of(f"claim {name} gets a device", await allocated(workspace, name), every)
        ):
            return
    await claim(workspace, "one-more", one_of(workspace.namespace, "true"))
    await use(workspace, "one-more")
    found = await allocated(workspace, "one-more", for_window=True)
    control = got_one_of("a claim gets a device", found, every)
    arose = bool(devices_of(found or {})) or await is_unschedulable(workspace, "one-more")
    workspace.control(control_of("one claim more than there are devices", control, arose=arose))
    held = devices_of(await workspace.api.get(RESOURCE_CLAIM, names[0], workspace.namespace))
    await release(workspace, names[0])
    found = await allocated(workspace, "one-more")
    workspace.assert_that(got_one_of("a released device is given to the claim that waits", found, held))


DRA_SUPPORT: Final = Check(
    "dra_support",
    CheckPlan(
        ("DeviceClass", "ResourceSlice with 3 devices", "9 ResourceClaims", "10 Pods"),
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
        "get resourceclaims.resource.k8s.io",
        "delete resourceclaims.resource.k8s.io",
        "watch resourceclaims.resource.k8s.io",
    ),
)
