"""robust_controller by Kueue: its definitions, its webhook, and how it turns Jobs into Workloads."""

from collections.abc import Callable
from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.groups import served
from neorion.conformance.adapters.kinds import (
    CLUSTER_QUEUE,
    DEFINITION,
    FLAVOR,
    JOB,
    LOCAL_QUEUE,
    WEBHOOKS,
    WORKLOAD,
    Json,
)
from neorion.conformance.adapters.pods import MOMENT, pod_spec
from neorion.conformance.adapters.removal import RUN_LABEL
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import operator as judge
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome
from neorion.keel.base import Error, Retry
from neorion.keel.kube import ServerError

_DEFINITIONS: Final = tuple(
    f"{plural}.kueue.x-k8s.io" for plural in ("clusterqueues", "localqueues", "resourceflavors", "workloads")
)
_WEBHOOK: Final = "vresourceflavor.kb.io"
_QUEUE: Final = {"kueue.x-k8s.io/queue-name": "queue"}
# Valid by its schema, and wrong by the webhook's rules: a label's value has no such characters.
_WRONG: Final = {"spec": {"nodeLabels": {"conformance.neorion.dev/size": "not a label's value!"}}}
_RIGHT: Final = {"spec": {"nodeLabels": {"conformance.neorion.dev/size": "any"}}}
_LIMITS: Final = ("The operator reconciles control-plane objects: nothing is said about accelerators.",)


async def _run(workspace: Workspace) -> Outcome:
    if not await served(workspace, WORKLOAD):
        return Outcome(
            missing="No known operator is installed: Kueue (kueue.x-k8s.io/v1beta2) is not served."
        )
    definitions = await workspace.api.list(DEFINITION)
    workspace.assert_that(judge.established(definitions, _DEFINITIONS))
    await _refuses(workspace)
    await _make_queue(workspace)
    await _owns(workspace)
    await _finishes(workspace)
    await _follows_edits(workspace)
    await _unmanaged(workspace)
    await _dead_webhook(workspace)
    environment = Environment.HARDWARE if workspace.options.hardware else Environment.SIMULATED
    return Outcome(
        environment, tuple(workspace.assertions), tuple(workspace.controls), limits=_LIMITS, subject="kueue"
    )


async def _refuses(workspace: Workspace) -> None:
    message = await _message(workspace, "wrong", _WRONG)
    workspace.assert_that(judge.refused_by(_WEBHOOK, message))
    workspace.assert_that(judge.accepted(await _message(workspace, "right", _RIGHT)))


async def _message(workspace: Workspace, name: str, body: Json) -> str:
    """The API server's refusal of a flavor; empty if it took the flavor."""
    try:
        await workspace.create(FLAVOR, f"{workspace.namespace}-{name}"[:63], body)
    except Retry as error:
        # The server's words about a webhook that it could not call are an answer; that it is away is none.
        if not isinstance(error, ServerError):
            raise
        return error.sentence
    except Error as error:
        return error.sentence
    return ""


async def _make_queue(workspace: Workspace) -> None:
    name = workspace.namespace
    await workspace.create(FLAVOR, name, {"spec": {}})
    quotas = [{"name": "cpu", "nominalQuota": "1"}, {"name": "memory", "nominalQuota": "1Gi"}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": quotas}]}]
    await workspace.create(CLUSTER_QUEUE, name, {"spec": {"namespaceSelector": {}, "resourceGroups": groups}})
    await workspace.create(LOCAL_QUEUE, "queue", {"spec": {"clusterQueue": name}})


async def _owns(workspace: Workspace) -> None:
    """A Job larger than the quota waits, so its Workload stays what it is while it is looked at."""
    began = workspace.clock.monotonic()
    job = await _make_job(workspace, "waiting", "50", _QUEUE)
    uid = job["metadata"]["uid"]
    children = await workspace.until(WORKLOAD, _owned(uid)) or []
    workspace.assert_that(judge.has_child(uid, children, workspace.clock.monotonic() - began))
    if not children:
        return
    child = children[0]["metadata"]
    await workspace.api.delete(WORKLOAD, child["name"], workspace.namespace)
    again = await workspace.until(WORKLOAD, _owned(uid, but=child["uid"])) or []
    workspace.assert_that(judge.recreated(child["uid"], again))
    await workspace.api.delete(JOB, "waiting", workspace.namespace)
    await workspace.until(WORKLOAD, lambda found: None if _owned(uid)(found) else True)
    left = _owned(uid)(await workspace.api.list(WORKLOAD, workspace.namespace)) or []
    workspace.assert_that(judge.all_gone(left))


async def _finishes(workspace: Workspace) -> None:
    """A Job within the quota is admitted and reaches its end."""
    job = await _make_job(workspace, "fitting", "10m", _QUEUE)
    uid = job["metadata"]["uid"]

    def finished(found: list[Json]) -> Json | None:
        return next(
            (each for each in _owned(uid)(found) or [] if judge.condition_of(each, "Finished") == "True"),
            None,
        )

    workload = await workspace.until(WORKLOAD, finished)
    workspace.assert_that(
        judge.has_condition("an admitted object reaches its end", workload, "Finished", "True")
    )


async def _follows_edits(workspace: Workspace) -> None:
    name = workspace.namespace
    for policy, status, words in (
        ("Hold", "False", "an edit is reconciled"),
        ("None", "True", "an edit taken back is reconciled"),
    ):
        await workspace.api.merge(CLUSTER_QUEUE, name, {"spec": {"stopPolicy": policy}})

        def turned(found: list[Json], status: str = status) -> Json | None:
            mine = (each for each in found if each["metadata"]["name"] == name)
            return next((each for each in mine if judge.condition_of(each, "Active") == status), None)

        queue = await workspace.until(CLUSTER_QUEUE, turned)
        workspace.assert_that(judge.has_condition(words, queue, "Active", status))


async def _unmanaged(workspace: Workspace) -> None:
    """A Job of no queue is not the operator's: the assertion about children must fail for it."""
    job = await _make_job(workspace, "unmanaged", "10m", {})
    uid = job["metadata"]["uid"]
    children = await workspace.until(WORKLOAD, _owned(uid), workspace.options.window) or []
    assertion = judge.has_child(uid, children, workspace.options.window.seconds)
    workspace.control(control_of("an object that the operator does not manage", assertion))


async def _dead_webhook(workspace: Workspace) -> None:
    """A webhook at which nothing listens, for objects of this run alone: its failure must not pass for a refusal."""
    name = "dead.conformance.neorion.dev"
    rule = {
        "apiGroups": ["kueue.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["resourceflavors"],
    }
    webhook = {
        "name": name,
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "objectSelector": {"matchLabels": {RUN_LABEL: workspace.run}},
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    await workspace.create(WEBHOOKS, workspace.namespace, {"webhooks": [webhook]})
    message = ""
    # The API server takes a new webhook up a moment after it was written.
    for attempt in range(20):
        message = await _message(workspace, f"dead-{attempt}", _RIGHT)
        if message:
            break
        await workspace.clock.sleep(workspace.pause)
    failed = judge.refused_by(name, message)
    workspace.control(control_of("a webhook that is dead", failed, arose="failed calling webhook" in message))
    await workspace.api.delete(WEBHOOKS, workspace.namespace)


async def _make_job(workspace: Workspace, name: str, cpu: str, labels: dict[str, str]) -> Json:
    spec = pod_spec(workspace, None, 0, MOMENT)
    spec["containers"][0]["resources"]["requests"]["cpu"] = cpu
    spec["tolerations"] = [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}]
    suspended = {"suspend": True} if labels else {}
    return await workspace.create(
        JOB, name, {"spec": {**suspended, "backoffLimit": 0, "template": {"spec": spec}}}, labels
    )


def _owned(uid: str, but: str = "") -> Callable[[list[Json]], list[Json] | None]:
    """Those of the objects that belong to one, without one of them."""

    def search(found: list[Json]) -> list[Json] | None:
        mine = [each for each in found if uid in judge.owners_of(each) and each["metadata"]["uid"] != but]
        return mine or None

    return search


ROBUST_CONTROLLER: Final = Check(
    "robust_controller",
    CheckPlan(
        ("3 ResourceFlavors", "ClusterQueue", "LocalQueue", "3 Jobs", "ValidatingWebhookConfiguration"),
        ("Kueue",),
        30,
    ),
    _run,
    (
        "list customresourcedefinitions.apiextensions.k8s.io",
        "create resourceflavors.kueue.x-k8s.io",
        "create clusterqueues.kueue.x-k8s.io",
        "patch clusterqueues.kueue.x-k8s.io",
        "create localqueues.kueue.x-k8s.io",
        "watch workloads.kueue.x-k8s.io",
        "delete workloads.kueue.x-k8s.io",
        "create jobs.batch",
        "create validatingwebhookconfigurations.admissionregistration.k8s.io",
        "delete validatingwebhookconfigurations.admissionregistration.k8s.io",
    ),
)
