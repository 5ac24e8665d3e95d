"""robust_controller by an operator that is installed: its definitions, its webhook, and how it reconciles."""

from collections.abc import Callable
from typing import Final

from neorion.conformance.adapters.check import Check
from neorion.conformance.adapters.kinds import DEFINITION, WEBHOOKS, Json
from neorion.conformance.adapters.operators import OPERATORS, Edit, TestedOperator
from neorion.conformance.adapters.removal import RUN_LABEL
from neorion.conformance.adapters.workspace import Workspace
from neorion.conformance.decide import operator as judge
from neorion.conformance.decide.verdict import control_of
from neorion.conformance.model import CheckPlan, Environment, Outcome
from neorion.keel.base import Error, Retry
from neorion.keel.kube import ServerError

_LIMITS: Final = ("The operator reconciles control-plane objects: nothing is said about accelerators.",)


async def _run(workspace: Workspace) -> Outcome:
    wanted = workspace.options.operator
    known = [each for each in OPERATORS if wanted in {"", each.name}]
    installed = [each for each in known if await each.is_served(workspace)]
    if not installed:
        return Outcome(missing=f"No known operator is installed: {'; '.join(each.needs for each in known)}.")
    operator = installed[0]
    definitions = await workspace.api.list(DEFINITION)
    workspace.assert_that(judge.established(definitions, operator.definitions))
    await _refuses(workspace, operator)
    await operator.prepare(workspace)
    await _owns(workspace, operator)
    await _finishes(workspace, operator)
    for edit in await operator.edits(workspace):
        await _follows(workspace, edit)
    await _unmanaged(workspace, operator)
    await _dead_webhook(workspace, operator)
    environment = Environment.HARDWARE if workspace.options.hardware else Environment.SIMULATED
    return Outcome(
        environment,
        tuple(workspace.assertions),
        tuple(workspace.controls),
        limits=_LIMITS,
        subject=operator.name,
    )


async def _refuses(workspace: Workspace, operator: TestedOperator) -> None:
    message = await _message(workspace, operator, "wrong", wrong=True)
    workspace.assert_that(judge.refused_by(operator.webhook, message))
    workspace.assert_that(judge.accepted(await _message(workspace, operator, "right", wrong=False)))


async def _message(workspace: Workspace, operator: TestedOperator, name: str, *, wrong: bool) -> str:
    """The API server's refusal of a guarded object; empty if it took the object."""
    body = operator.body(workspace, wrong=wrong)
    try:
        await workspace.create(operator.guarded, f"{workspace.namespace}-{name}"[:63], body)
    except Retry as error:
        # The server's words about a webhook that it could not call are an answer; that it is away is none.
        if not isinstance(error, ServerError):
            raise
        return error.sentence
    except Error as error:
        return error.sentence
    return ""


async def _owns(workspace: Workspace, operator: TestedOperator) -> None:
    began = workspace.clock.monotonic()
    owner = await operator.make_waiting(workspace, "waiting")
    uid = owner["metadata"]["uid"]
    children = await workspace.until(operator.child, _owned(uid)) or []
    workspace.assert_that(judge.has_child(uid, children, workspace.clock.monotonic() - began))
    if not children:
        return
    child = children[0]["metadata"]
    await workspace.api.delete(operator.child, child["name"], workspace.namespace)
    again = await workspace.until(operator.child, _owned(uid, but=child["uid"])) or []
    workspace.assert_that(judge.recreated(child["uid"], again))
    await workspace.api.delete(operator.owner, "waiting", workspace.namespace)
    await workspace.until(operator.child, lambda found: None if _owned(uid)(found) else True)
    left = _owned(uid)(await workspace.api.list(operator.child, workspace.namespace)) or []
    workspace.assert_that(judge.all_gone(left))


async def _finishes(workspace: Workspace, operator: TestedOperator) -> None:
    """An object that nothing holds back reaches its end."""
    owner = await operator.make_fitting(workspace, "fitting")
    uid = owner["metadata"]["uid"]
    kind, condition = operator.end

    def finished(found: list[Json]) -> Json | None:
        mine = [each for each in found if each["metadata"]["uid"] == uid or uid in judge.owners_of(each)]
        return next((each for each in mine if judge.condition_of(each, condition) == "True"), None)

    ended = await workspace.until(kind, finished)
    workspace.assert_that(judge.has_condition("an admitted object reaches its end", ended, condition, "True"))


async def _follows(workspace: Workspace, edit: Edit) -> None:
    if edit.change:
        namespace = workspace.namespace if edit.kind.namespaced else ""
        await workspace.api.merge(edit.kind, edit.name, edit.change, namespace)

    def turned(found: list[Json]) -> Json | None:
        mine = (each for each in found if each["metadata"]["name"] == edit.name)
        return next((each for each in mine if judge.condition_of(each, edit.condition) == edit.status), None)

    thing = await workspace.until(edit.kind, turned)
    workspace.assert_that(judge.has_condition(edit.words, thing, edit.condition, edit.status))


async def _unmanaged(workspace: Workspace, operator: TestedOperator) -> None:
    """The assertion about children must fail for an object that is not the operator's."""
    thing = await operator.make_unmanaged(workspace, "unmanaged")
    uid = thing["metadata"]["uid"]
    children = await workspace.until(operator.child, _owned(uid), workspace.options.window) or []
    assertion = judge.has_child(uid, children, workspace.options.window.seconds)
    workspace.control(control_of("an object that the operator does not manage", assertion))


async def _dead_webhook(workspace: Workspace, operator: TestedOperator) -> None:
    """A webhook at which nothing listens, for objects of this run alone: its failure must not pass for a refusal."""
    name = "dead.conformance.neorion.dev"
    rule = {
        "apiGroups": [operator.guarded.group],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": [operator.guarded.plural],
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
        message = await _message(workspace, operator, f"dead-{attempt}", wrong=False)
        if message:
            break
        await workspace.clock.sleep(workspace.pause)
    failed = judge.refused_by(name, message)
    workspace.control(control_of("a webhook that is dead", failed, arose="failed calling webhook" in message))
    await workspace.api.delete(WEBHOOKS, workspace.namespace)


def _owned(uid: str, but: str = "") -> Callable[[list[Json]], list[Json] | None]:
    """Those of the objects that belong to one, without one of them."""

    def search(found: list[Json]) -> list[Json] | None:
        mine = [each for each in found if uid in judge.owners_of(each) and each["metadata"]["uid"] != but]
        return mine or None

    return search


ROBUST_CONTROLLER: Final = Check(
    "robust_controller",
    CheckPlan(
        ("a few objects of the operator, with their Jobs", "ValidatingWebhookConfiguration"),
        ("Kueue or Kubeflow Trainer",),
        30,
    ),
    _run,
    (
        "list customresourcedefinitions.apiextensions.k8s.io",
        "create validatingwebhookconfigurations.admissionregistration.k8s.io",
        "delete validatingwebhookconfigurations.admissionregistration.k8s.io",
        *(right for operator in OPERATORS for right in operator.rights),
    ),
)
