"""Checks that need a real kubelet: on a sound node, on one that is broken on purpose, and with their control prevented."""

import copy
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from neorion.conformance.adapters.kinds import DEPLOYMENT, NODE, POD, SERVICE
from neorion.conformance.decide.exposition import Exposition
from neorion.conformance.model import Verdict, builtin_profile
from neorion.conformance.model.profile import DriverVersion, MetricNames
from neorion.keel.kube import Kind, MergePatch
from neorion.keel.kube.client import Client
from tests.conformance.checker import SOUND, Change, Checker, Fault, Rows, conclude_as
from tests.conformance.node.conftest import NODE as NODE_NAME
from tests.node.pods import NEEDS

pytestmark = [pytest.mark.anyio, NEEDS, pytest.mark.timeout(300)]
Json = dict[str, Any]
RESOURCE = "nvidia.com/gpu"
# An emulated driver: every container can read this file, as it can the version of a real driver.
DRIVER = DriverVersion(label="test.neorion.dev/driver", file="/proc/sys/kernel/osrelease")


def of_pod(name: str, **changes: Any) -> Change:
    """Pods of this name are run with another spec; None takes a field away."""

    def change(kind: Kind[Any], manifest: Json) -> Json:
        if kind is not POD or manifest["metadata"]["name"] != name:
            return manifest
        spec = {**manifest["spec"], **{key: value for key, value in changes.items() if value is not None}}
        return {**manifest, "spec": {key: spec[key] for key in spec if changes.get(key, "") is not None}}

    return change


def devices_of_pod(name: str, count: int) -> Change:
    """Pods of this name are run with another number of devices than they ask for."""

    def change(kind: Kind[Any], manifest: Json) -> Json:
        if kind is POD and manifest["metadata"]["name"] == name:
            manifest = copy.deepcopy(manifest)
            limits = manifest["spec"]["containers"][0]["resources"]["limits"]
            limits.pop(RESOURCE, None)
            limits |= {RESOURCE: str(count)} if count else {}
        return manifest

    return change


def without_volume(kind: Kind[Any], manifest: Json) -> Json:
    """The device of the control is not handed over."""
    if kind is POD and manifest["metadata"]["name"] == "control":
        manifest = copy.deepcopy(manifest)
        manifest["spec"].pop("volumes")
        manifest["spec"]["containers"][0].pop("volumeMounts")
    return manifest


def scaled_to(replicas: int, instead: int) -> Change:
    """A controller that makes another number of replicas than it is given."""

    def change(kind: Kind[Any], manifest: Json) -> Json:
        if kind is DEPLOYMENT and manifest.get("spec", {}).get("replicas") == replicas:
            return {**manifest, "spec": {**manifest["spec"], "replicas": instead}}
        return manifest

    return change


def unrouted(kind: Kind[Any], manifest: Json) -> Json:
    """A Service that finds none of its pods."""
    if kind is SERVICE and manifest["metadata"]["name"] == "prefill":
        return {**manifest, "spec": {**manifest["spec"], "selector": {"no": "pods"}}}
    return manifest


def stale(kind: Kind[Any], thing: Json) -> Json:
    """A node that advertises a driver that it no longer has."""
    labels = thing["metadata"].get("labels", {})
    if kind is NODE and DRIVER.label in labels:
        return {**thing, "metadata": {**thing["metadata"], "labels": {**labels, DRIVER.label: "1.2.3"}}}
    return thing


ACCESS = {
    "sound": (SOUND, Verdict.PASS, "1 controls"),
    "leaky": (Fault(devices_of_pod("ungranted", 1)), Verdict.FAIL, "did not ask sees no device"),
    "ungiven": (Fault(devices_of_pod("granted", 0)), Verdict.FAIL, "the device that it asked for"),
    "blind": (Fault(without_volume), Verdict.INCONCLUSIVE, "hostPath"),
}
DRIVERS = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "stale": (Fault(seen=stale), Verdict.FAIL, "advertised driver version"),
    "unconfigured": (Fault(devices_of_pod("granted", 0)), Verdict.FAIL, "gives a device"),
    "generous": (Fault(devices_of_pod("ungranted", 1)), Verdict.INCONCLUSIVE, "asks for none"),
}
SANDBOXES = {
    "sound": (SOUND, Verdict.PASS, "1 controls"),
    "open": (Fault(of_pod("sandboxed", runtimeClassName=None)), Verdict.FAIL, "a kernel of its own"),
    "blind": (Fault(of_pod("ordinary", runtimeClassName="gvisor")), Verdict.INCONCLUSIVE, "ordinary"),
}
ROLES = {
    "sound": (SOUND, Verdict.PASS, "1 controls"),
    "unrouted": (Fault(unrouted), Verdict.FAIL, "one request passes both roles"),
    "stuck": (Fault(scaled_to(2, 1)), Verdict.FAIL, "prefill scales"),
    "present": (Fault(scaled_to(0, 1)), Verdict.INCONCLUSIVE, "no prefill pods"),
}


async def test_access_to_devices(checker: Checker):
    # One after the other: the node has two devices, and a sound run holds both.
    for name, row in ACCESS.items():
        await conclude_as(checker, "secure_accelerator_access", {name: row})


async def test_drivers(checker: Checker, client: Client):
    profile = replace_profile(checker, version=DRIVER)
    async with advertised(client):
        for name, row in DRIVERS.items():
            await conclude_as(profile, "driver_runtime_management", {name: row})


@pytest.mark.slow
@pytest.mark.needs("gvisor")
async def test_sandboxes(checker: Checker):
    await conclude_as(checker, "workload_sandboxing", SANDBOXES)


@pytest.mark.slow
async def test_prefill_and_decode(checker: Checker):
    await conclude_as(checker, "disaggregated_inference", ROLES)


def lines(pattern: str, becomes: str = "") -> Fault:
    """An exporter whose lines of this kind are others, or missing."""

    def text(path: str, served: str) -> str:
        return re.sub(pattern, becomes, served, flags=re.MULTILINE) if "proxy" in path else served

    return Fault(text=text)


def without_a_device(_: str, served: str) -> str:
    """An exporter that has forgotten one of its devices."""
    ids = sorted(set(re.findall(r'UUID="([^"]+)"', served)))
    return "\n".join(line for line in served.split("\n") if not ids or ids[0] not in line)


# Names that only look alike, beside the right ones.
ALIKE = "".join(f'process_DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{index}"}} 1\n' for index in range(2))
METRICS = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "one-missing": (Fault(text=without_a_device), Verdict.FAIL, "one series of utilization"),
    "alike": (lines("^DCGM_FI_DEV_FB_USED", "process_FB_USED"), Verdict.FAIL, "one series of memory"),
    "garbage": (lines(r"\A", "<html>{"), Verdict.FAIL, "readable"),
    "doubled": (lines(r"\Z", ALIKE), Verdict.PASS, "2 controls"),
}

# With a copy that lacks nothing.
PREVENTED_METRICS: Rows = {"whole": (SOUND, Verdict.INCONCLUSIVE, "without one device")}
PLATFORMS: dict[str, Rows] = {
    "secure_accelerator_access": ACCESS,
    "driver_runtime_management": DRIVERS,
    "workload_sandboxing": SANDBOXES,
    "disaggregated_inference": ROLES,
    "accelerator_metrics": {**METRICS, **PREVENTED_METRICS},
}


async def test_metrics_of_devices(checker: Checker):
    await conclude_as(checker, "accelerator_metrics", METRICS)


async def test_a_copy_that_lacks_nothing_is_not_a_control(checker: Checker, monkeypatch: pytest.MonkeyPatch):
    def unchanged(exposition: Exposition, _names: MetricNames) -> Exposition:
        return exposition

    monkeypatch.setattr("neorion.conformance.decide.exposition.without_one", unchanged)
    await conclude_as(checker, "accelerator_metrics", PREVENTED_METRICS)


@asynccontextmanager
async def advertised(client: Client) -> AsyncGenerator[None]:
    """The node's label says which driver it has, as an operator would write it."""
    node: Json = await client.get(NODE.raw, NODE_NAME)
    release = node["status"]["nodeInfo"]["kernelVersion"]
    for value in (release, None):
        await client.patch(NODE.raw, NODE_NAME, MergePatch({"metadata": {"labels": {DRIVER.label: value}}}))
        if value:
            yield


def replace_profile(checker: Checker, **changed: Any) -> Checker:
    profile = builtin_profile("nvidia")
    fields = {name: getattr(profile, name) for name in profile.__struct_fields__}
    return replace(checker, options=replace(checker.options, profile=type(profile)(**{**fields, **changed})))
