"""Checks of what answers requests, collects metrics and scales: on sound platforms, on broken ones, and with their control prevented."""

import copy
from typing import Any

import pytest

from neorion.conformance.adapters.kinds import AUTOSCALER, HTTP_ROUTE, POD
from neorion.conformance.model import Verdict
from neorion.drydock.addons import url_of
from neorion.drydock.cluster import Cluster
from neorion.keel.base import Duration
from neorion.keel.kube import Kind
from tests.conformance.checker import SOUND, Change, Checker, Fault, Rows, conclude_as
from tests.node.pods import NEEDS

pytestmark = [pytest.mark.anyio, NEEDS, pytest.mark.timeout(400), pytest.mark.needs("services")]
Json = dict[str, Any]
RESOURCE = "nvidia.com/gpu"
# As many as the largest simulated machine has.
LARGEST = 8


def weighing(when: tuple[int, ...], instead: tuple[int, ...]) -> Change:
    """A gateway that takes these weights for others."""

    def change(kind: Kind[Any], manifest: Json) -> Json:
        if kind is not HTTP_ROUTE:
            return manifest
        manifest = copy.deepcopy(manifest)
        for rule in manifest["spec"]["rules"]:
            backends = rule["backendRefs"]
            if tuple(each.get("weight") for each in backends) == when:
                for backend, weight in zip(backends, instead, strict=True):
                    backend["weight"] = weight
        return manifest

    return change


def headerless(kind: Kind[Any], manifest: Json) -> Json:
    """A gateway that knows no rules about headers."""
    if kind is HTTP_ROUTE:
        rules = [rule for rule in manifest["spec"]["rules"] if "matches" not in rule]
        manifest = {**manifest, "spec": {**manifest["spec"], "rules": rules}}
    return manifest


def annotated(name: str, annotations: dict[str, str]) -> Change:
    """A monitoring system to which pods of this name look otherwise than they are."""

    def change(kind: Kind[Any], manifest: Json) -> Json:
        if kind is POD and manifest["metadata"]["name"] == name:
            manifest = {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}
        return manifest

    return change


def frozen(kind: Kind[Any], manifest: Json) -> Json:
    """An autoscaler that never changes the number of replicas."""
    if kind is AUTOSCALER:
        manifest = {**manifest, "spec": {**manifest["spec"], "minReplicas": 1, "maxReplicas": 1}}
    return manifest


def any_metric(kind: Kind[Any], manifest: Json) -> Json:
    """The autoscaler of the control has the metric that it must not have."""
    if kind is AUTOSCALER and manifest["metadata"]["name"] == "wrong":
        manifest = copy.deepcopy(manifest)
        metric = manifest["spec"]["metrics"][0]["object"]["metric"]
        metric["name"] = metric["name"].removesuffix("_absent")
    return manifest


def idle(kind: Kind[Any], manifest: Json) -> Json:
    """An autoscaler that never sees the pods that wait."""
    if kind is POD and manifest["metadata"]["name"].startswith("demand-"):
        gates = [{"name": "conformance.neorion.dev/held"}]
        manifest = {**manifest, "spec": {**manifest["spec"], "schedulingGates": gates}}
    return manifest


def possible(kind: Kind[Any], manifest: Json) -> Json:
    """The pod of the control fits on a machine that can be bought."""
    if kind is POD and manifest["metadata"]["name"] == "impossible":
        manifest = copy.deepcopy(manifest)
        manifest["spec"]["containers"][0]["resources"]["limits"][RESOURCE] = str(LARGEST)
    return manifest


DISCOVERED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": "8080",
    "prometheus.io/path": "/cgi-bin/metrics",
}
ROUTES: Rows = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "unweighted": (Fault(weighing((70, 30, 0), (1, 1, 1))), Verdict.FAIL, "split by weight"),
    "headerless": (Fault(headerless), Verdict.FAIL, "requests with the header"),
    "stuck": (Fault(weighing((100, 0), (70, 30))), Verdict.INCONCLUSIVE, "100 to 0"),
}
COUNTS: Rows = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "undiscovered": (Fault(annotated("server", {})), Verdict.FAIL, "the counter has every request"),
    "curious": (Fault(annotated("hidden", DISCOVERED)), Verdict.INCONCLUSIVE, "is not discovered"),
}
REPLICAS: Rows = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "frozen": (Fault(frozen), Verdict.FAIL, "replicas grow with the metric"),
    "any-metric": (Fault(any_metric), Verdict.INCONCLUSIVE, "a metric that does not exist"),
}
POOLS: Rows = {
    "sound": (SOUND, Verdict.PASS, "1 controls"),
    "idle": (Fault(idle), Verdict.FAIL, "a pending pod gets a new node"),
    "possible": (Fault(possible), Verdict.INCONCLUSIVE, "no machine can hold"),
}
PLATFORMS = {
    "ai_inference": ROUTES,
    "ai_service_metrics": COUNTS,
    "pod_autoscaling": REPLICAS,
    "cluster_autoscaling": POOLS,
}


@pytest.mark.slow
async def test_routes(checker: Checker):
    await conclude_as(checker, "ai_inference", ROUTES)


@pytest.mark.slow
async def test_counts(checker: Checker, platform: Cluster):
    named = checker.with_options(prometheus=url_of(platform, "prometheus"))
    await conclude_as(named, "ai_service_metrics", COUNTS)


@pytest.mark.slow
async def test_replicas(checker: Checker):
    await conclude_as(checker, "pod_autoscaling", REPLICAS)


@pytest.mark.slow
async def test_pools(checker: Checker):
    """One after the other: a pool grows for one run at a time."""
    for name, row in POOLS.items():
        # Karpenter gives idle nodes back one after the other. Pods that it never sees need no such time.
        patience = checker.options.patience if name == "idle" else Duration.of(seconds=60)
        await conclude_as(checker.with_options(patience=patience), "cluster_autoscaling", {name: row})
