"""Checks of devices on simulated nodes: of shares, of virtual ones and of network interfaces. Sound and broken on purpose."""

import copy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from neorion.conformance.adapters.kinds import NODE, POD, RESOURCE_CLAIM, RESOURCE_SLICE
from neorion.conformance.model import Verdict
from neorion.keel.kube import Kind, MergePatch
from neorion.keel.kube.client import Client
from tests.conformance.checker import SOUND, Checker, Fault, Rows, conclude_as

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
Json = dict[str, Any]

_HOST = "h100x8-0000"
_VIRTUAL = "nvidia.com/vgpu.present"


def uncounted(kind: Kind[Any], manifest: Json) -> Json:
    """An allocator that counts no memory: each part costs nothing."""
    if kind is RESOURCE_SLICE:
        manifest = copy.deepcopy(manifest)
        for device in manifest["spec"].get("devices", ()):
            for used in device.get("consumesCounters", ()):
                used["counters"]["memory"]["value"] = "0"
    return manifest


def unselective(kind: Kind[Any], manifest: Json) -> Json:
    """An allocator that ignores selectors."""
    if kind is RESOURCE_CLAIM:
        manifest = copy.deepcopy(manifest)
        for request in manifest["spec"]["devices"]["requests"]:
            request.get("exactly", {}).pop("selectors", None)
    return manifest


def endless(kind: Kind[Any], manifest: Json) -> Json:
    """A device that can be shared without end: its claims ask for no memory to speak of."""
    if kind is RESOURCE_CLAIM:
        manifest = copy.deepcopy(manifest)
        for request in manifest["spec"]["devices"]["requests"]:
            if "capacity" in request.get("exactly", {}):
                request["exactly"]["capacity"]["requests"]["memory"] = "1Gi"
    return manifest


def gated(*names: str) -> Any:
    """The scheduler never sees these pods, so nothing shows what it would have done."""

    def change(kind: Kind[Any], manifest: Json) -> Json:
        if kind is POD and manifest["metadata"]["name"] in names:
            manifest = copy.deepcopy(manifest)
            manifest["spec"]["schedulingGates"] = [{"name": "conformance.neorion.dev/held"}]
        return manifest

    return change


def unlimited(kind: Kind[Any], manifest: Json) -> Json:
    """A quota that does not count virtual devices."""
    if kind.name == "ResourceQuota":
        return {**manifest, "spec": {"hard": {"requests.nvidia.com/gpu": "100"}}}
    return manifest


def elsewhere(kind: Kind[Any], thing: Json) -> Json:
    """A scheduler that ignores on which node an interface is."""
    if kind is POD and thing["metadata"]["name"] == "attached" and thing["spec"].get("nodeName"):
        return {**thing, "spec": {**thing["spec"], "nodeName": "another"}}
    return thing


def bare(kind: Kind[Any], thing: Json) -> Json:
    """A driver that publishes one of its interfaces without characteristics."""
    if kind is RESOURCE_SLICE and thing["spec"]["driver"] == "dra.net":
        first, *others = thing["spec"]["devices"]
        return {
            **thing,
            "spec": {**thing["spec"], "devices": [first, *({"name": x["name"]} for x in others)]},
        }
    return thing


@asynccontextmanager
async def virtual_devices(client: Client) -> AsyncGenerator[None]:
    """The machine's devices are virtual ones, as their operator would mark them."""
    for value in ("true", None):
        await client.patch(NODE.raw, _HOST, MergePatch({"metadata": {"labels": {_VIRTUAL: value}}}))
        if value:
            yield


@asynccontextmanager
async def network_driver(client: Client) -> AsyncGenerator[None]:
    """A driver of two network interfaces, as far as the control plane sees one."""
    devices = [
        {
            "name": f"eth{index}",
            "attributes": {"dra.net/rdma": {"bool": True}, "ifName": {"string": f"eth{index}"}},
        }
        for index in range(8)
    ]
    pool = {"name": _HOST, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "dra.net", "pool": pool, "nodeName": _HOST, "devices": devices}
    await client.create(RESOURCE_SLICE.raw, {"metadata": {"name": "test-interfaces"}, "spec": spec})
    try:
        yield
    finally:
        await client.delete(RESOURCE_SLICE.raw, "test-interfaces")


SHARES = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "uncounted": (Fault(uncounted), Verdict.FAIL, "one part more than the device has waits"),
    "endless": (Fault(endless), Verdict.FAIL, "one share more than the device has waits"),
    "unseen": (Fault(gated("share-more")), Verdict.INCONCLUSIVE, "one share more"),
}
VIRTUAL = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "unlimited": (Fault(unlimited), Verdict.FAIL, "same quota"),
    "unseen": (Fault(gated("absent")), Verdict.INCONCLUSIVE, "does not exist"),
}
INTERFACES = {
    "sound": (SOUND, Verdict.PASS, "1 controls"),
    "elsewhere": (Fault(seen=elsewhere), Verdict.FAIL, "on the node that has it"),
    "bare": (Fault(seen=bare), Verdict.FAIL, "published with their characteristics"),
    "unseen": (Fault(gated("absent")), Verdict.INCONCLUSIVE, "no interface has"),
}
ALLOCATIONS = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "unselective": (Fault(unselective), Verdict.FAIL, "selector by attribute"),
    "unseen": (Fault(gated("no-such")), Verdict.INCONCLUSIVE, "no device meets"),
}
PLATFORMS: dict[str, Rows] = {
    "dra_support": ALLOCATIONS,
    "gpu_sharing": SHARES,
    "virtualized_accelerator": VIRTUAL,
    "high_performance_networking": INTERFACES,
}


async def test_claims_for_devices(checker: Checker):
    await conclude_as(checker, "dra_support", ALLOCATIONS)


async def test_shares_of_a_device(checker: Checker):
    await conclude_as(checker, "gpu_sharing", SHARES)


async def test_virtual_devices(checker: Checker, client: Client):
    async with virtual_devices(client):
        await conclude_as(checker, "virtualized_accelerator", VIRTUAL)


async def test_network_interfaces(checker: Checker, client: Client):
    async with network_driver(client):
        await conclude_as(checker, "high_performance_networking", INTERFACES)


async def test_what_simulated_nodes_cannot_show_is_skipped_with_a_reason(checker: Checker):
    for requirement in (
        "driver_runtime_management",
        "virtualized_accelerator",
        "high_performance_networking",
        "disaggregated_inference",
        "workload_sandboxing",
        "advanced_inference_ingress",
    ):
        result = await checker.run(requirement)
        assert result.verdict is Verdict.SKIP
        assert len(result.reason) > 20
