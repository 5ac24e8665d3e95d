"""Checks on a real API server: sound, broken on purpose, with their control prevented, interrupted, and without rights."""

import anyio
import pytest

from neorion.conformance.adapters.kinds import FLAVOR, WEBHOOKS, kind
from neorion.conformance.adapters.removal import RUN_LABEL
from neorion.conformance.adapters.run_folder import load_run, verify_run
from neorion.conformance.model import Environment, Verdict
from neorion.keel.base import Denied, NotFound
from neorion.keel.kube import Selector
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import NAMESPACE
from tests.conformance.checker import SOUND, Checker, Fault, Rows, conclude_as
from tests.conformance.kube.faults import ungated, unguarded, unhooked, unplaced, unwatched

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


GANGS: Rows = {
    "sound": (SOUND, Verdict.PASS, "1 controls"),
    "ungated": (Fault(ungated), Verdict.FAIL, "a gang that does not fit"),
    "unplaced": (Fault(unplaced), Verdict.INCONCLUSIVE, "without a gang scheduler"),
}
OPERATORS: Rows = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "unwatched": (Fault(unwatched), Verdict.FAIL, "reconciled into a child"),
    "unguarded": (Fault(unguarded), Verdict.FAIL, "webhook refuses"),
    "unhooked": (Fault(unhooked), Verdict.INCONCLUSIVE, "a webhook that is dead"),
}
PLATFORMS: dict[str, Rows] = {"gang_scheduling": GANGS, "robust_controller": OPERATORS}


async def test_a_sound_platform_passes_and_is_left_clean(checker: Checker, client: Client):
    result = await checker.run("robust_controller")
    assert (result.verdict, result.left_behind) == (Verdict.PASS, ()), result.reason
    assert result.outcome.environment is Environment.SIMULATED
    assert all(control.tripped for control in result.outcome.controls)
    assert verify_run(checker.run_folder) == []
    await assert_clean(checker, client)


async def test_gangs(checker: Checker):
    # One after the other: each needs the room of the one node.
    for name, row in GANGS.items():
        await conclude_as(checker, "gang_scheduling", {name: row})


async def test_operators(checker: Checker):
    await conclude_as(checker, "robust_controller", OPERATORS)


async def test_what_is_not_installed_is_skipped_with_a_reason(checker: Checker):
    for requirement in ("ai_inference", "pod_autoscaling", "ai_service_metrics", "accelerator_metrics"):
        result = await checker.run(requirement)
        assert result.verdict is Verdict.SKIP
        assert result.reason


async def test_an_absent_autoscaler_is_proven_absent(checker: Checker):
    result = await checker.run("cluster_autoscaling")
    assert result.verdict is Verdict.NOT_APPLICABLE
    assert "Karpenter" in result.reason


@pytest.mark.parametrize("after_s", [0.05, 0.5, 3.0])
async def test_an_interrupted_run_cleans_up_and_says_so(checker: Checker, client: Client, after_s: float):
    engine = checker.engine()
    begun = anyio.Event()
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def interrupt() -> None:
                await begun.wait()
                # A moment of the run, not a wait for something: each is another place to be interrupted at.
                with anyio.move_on_after(after_s):
                    await anyio.sleep_forever()
                scope.cancel()

            tasks.start_soon(interrupt)
            await engine.run(
                checker.request("gang_scheduling"), lambda _: None, lambda name: _begin(begun, name)
            )
    assert scope.cancelled_caught
    run = load_run(checker.run_folder)
    assert run.interrupted
    assert not any(result.verdict in {Verdict.PASS, Verdict.FAIL} for result in run.results)
    assert verify_run(checker.run_folder) == []
    await assert_clean(checker, client)


async def test_rights_that_are_missing_are_named_before_anything_is_made(checker: Checker, client: Client):
    viewer = Checker(client.acting_as("viewer", ("system:authenticated",)), checker.folder)
    binding = {
        "metadata": {"name": "conformance-test-viewer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer"}],
    }
    bindings = kind(
        "ClusterRoleBinding", "clusterrolebindings", "rbac.authorization.k8s.io/v1", namespaced=False
    )
    await client.create(bindings, binding)
    try:
        with pytest.raises(Denied) as refused:
            await viewer.run("gang_scheduling")
    finally:
        await client.delete(bindings, "conformance-test-viewer")
    assert "create namespaces" in refused.value.sentence
    assert "create clusterqueues.kueue.x-k8s.io" in refused.value.sentence
    # What the viewer may do is not listed, nor what the cluster does not serve.
    assert "watch pods" not in refused.value.sentence
    assert "jobsets" not in refused.value.sentence
    await assert_clean(checker, client)


def _begin(begun: anyio.Event, name: str) -> None:
    if name == "gang_scheduling":
        begun.set()


async def assert_clean(checker: Checker, client: Client) -> None:
    label = Selector(labels=f"{RUN_LABEL}={checker.request().id}")
    assert (await client.list(NAMESPACE, select=label)).items == []
    for each in (FLAVOR, WEBHOOKS):
        try:
            assert (await client.list(each, select=label)).items == []
        except NotFound:
            continue
