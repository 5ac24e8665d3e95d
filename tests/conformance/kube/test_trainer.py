"""robust_controller by Kubeflow Trainer: sound, and broken on purpose."""

from pathlib import Path
from typing import Any

import pytest

from neorion.conformance.adapters.kinds import JOB_SET, TRAINING_RUNTIME
from neorion.conformance.adapters.operators import OPERATORS
from neorion.conformance.model import Verdict
from neorion.keel.kube import Kind
from neorion.keel.kube.client import Client
from tests.conformance.checker import SOUND, Checker, Fault, Rows, conclude_as
from tests.conformance.kube.faults import unhooked

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.needs("drydock", "trainer")]
Json = dict[str, Any]


def disowned(kind: Kind[Any], thing: Json) -> Json:
    """An operator that does not own what it makes."""
    if kind is JOB_SET:
        return {**thing, "metadata": {**thing["metadata"], "ownerReferences": []}}
    return thing


def unguarded(kind: Kind[Any], manifest: Json) -> Json:
    """A webhook that lets a wrong runtime pass."""
    if kind is TRAINING_RUNTIME:
        (job,) = manifest["spec"]["template"]["spec"]["replicatedJobs"]
        job["replicas"] = 1
    return manifest


ROWS: Rows = {
    "sound": (SOUND, Verdict.PASS, "2 controls"),
    "disowned": (Fault(seen=disowned), Verdict.FAIL, "reconciled into a child"),
    "unguarded": (Fault(unguarded), Verdict.FAIL, "webhook refuses"),
    "unhooked": (Fault(unhooked), Verdict.INCONCLUSIVE, "a webhook that is dead"),
}


async def test_trainer(addons_client: Client, tmp_path: Path):
    checker = Checker(addons_client, tmp_path).with_options(operator="trainer")
    await conclude_as(checker, "robust_controller", ROWS)


async def test_an_operator_that_is_not_installed_is_named(checker: Checker):
    result = await checker.with_options(operator="trainer").run("robust_controller")
    assert result.verdict is Verdict.SKIP
    assert next(each.needs for each in OPERATORS if each.name == "trainer") in result.reason
