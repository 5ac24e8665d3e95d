"""Platforms that are broken on purpose, as changes of the objects that they are given."""

import copy
from typing import Any

from neorion.conformance.adapters.kinds import FLAVOR, JOB, JOB_SET, POD, WEBHOOKS
from neorion.keel.kube import Kind

Json = dict[str, Any]


def ungated(kind: Kind[Any], manifest: Json) -> Json:
    """A platform on which nothing gathers pods: each of them is placed by itself."""
    if kind not in {JOB, JOB_SET} or manifest["metadata"]["name"] == "blocker":
        return manifest
    manifest = copy.deepcopy(manifest)
    manifest["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name", None)
    spec = manifest["spec"]
    spec.pop("suspend", None)
    jobs = [job["template"]["spec"] for job in spec.get("replicatedJobs", ())] if kind is JOB_SET else [spec]
    for job in jobs:
        job["template"]["metadata"].pop("annotations", None)
        job["template"]["spec"].pop("schedulerName", None)
        job["template"]["spec"].pop("schedulingGroup", None)
    return manifest


def unplaced(kind: Kind[Any], manifest: Json) -> Json:
    """Nothing places the pods of the control."""
    if kind is POD and manifest["metadata"]["name"].startswith("alone-"):
        manifest = copy.deepcopy(manifest)
        manifest["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "nowhere"}
    return manifest


def unwatched(kind: Kind[Any], manifest: Json) -> Json:
    """An operator that is not there: it never sees the Job that it should reconcile."""
    if kind is JOB and manifest["metadata"]["name"] == "waiting":
        manifest = copy.deepcopy(manifest)
        manifest["metadata"]["labels"].pop("kueue.x-k8s.io/queue-name", None)
    return manifest


def unguarded(kind: Kind[Any], manifest: Json) -> Json:
    """A webhook that lets a wrong object pass."""
    return {**manifest, "spec": {}} if kind is FLAVOR else manifest


def unhooked(kind: Kind[Any], manifest: Json) -> Json:
    """The dead webhook of the control is never called."""
    return {**manifest, "webhooks": []} if kind is WEBHOOKS else manifest
