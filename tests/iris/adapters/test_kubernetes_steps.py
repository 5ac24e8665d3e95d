"""What is done next about a slice, as values: the order in which it comes and goes."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from neorion.capacity.coreweave import NodePool
from neorion.iris.adapters.platforms.kubernetes.record import Record, SliceSpec
from neorion.iris.adapters.platforms.kubernetes.settings import GroupTemplate, PoolTemplate
from neorion.iris.adapters.platforms.kubernetes.steps import (
    CreatePod,
    DeletePod,
    DeleteRecord,
    Fail,
    MarkStarted,
    Observed,
    Wait,
    next_steps,
)
from neorion.iris.model import Resources
from neorion.keel.base import Duration, Instant, NoCapacity, QuotaExceeded
from neorion.keel.kube import instant, time_text
from neorion.keel.kube.core import Pod

NOW = instant("2026-01-31T12:00:00Z")
PATIENCE = Duration.of(minutes=10)
BOUGHT = GroupTemplate(PoolTemplate("gd-8xh100ib-i128"))
SPEC = SliceSpec("slice-a", "h100", 2, Resources(gpus=8), (), "here:1")


def pod(number: int, node: str = "", **meta: Any) -> Pod:
    name = f"iris-worker-iris-h100-a-{number}"
    body = {"metadata": {"name": name, **meta}, "spec": {"nodeName": node}}
    return msgspec.convert(body, Pod)


def pool(*conditions: dict[str, str], **meta: Any) -> NodePool:
    spec = {"instanceType": "gd-8xh100ib-i128", "targetNodes": 2}
    body = {"metadata": {"name": "iris-h100-a", **meta}, "spec": spec, "status": {"conditions": conditions}}
    return msgspec.convert(body, NodePool)


def slice_(
    *pods: Pod, of: NodePool | None = None, nodes: int = 0, now: Instant = NOW, **record: Any
) -> Observed:
    there = {each.meta.name for each in pods}
    names = [(number, f"iris-worker-iris-h100-a-{number}") for number in range(2)]
    missing = [each for each in names if each[1] not in there]
    return Observed(Record("iris-h100-a", "u1", SPEC, **record), pods, missing, of, nodes, {}, now)


def test_the_pods_of_a_slice_are_made_when_its_pool_is_there():
    assert next_steps(slice_(), BOUGHT, PATIENCE) == []
    assert next_steps(slice_(of=pool()), BOUGHT, PATIENCE) == [CreatePod(0), CreatePod(1), MarkStarted()]
    half = slice_(pod(0), of=pool())
    assert next_steps(half, BOUGHT, PATIENCE) == [CreatePod(1), MarkStarted()]
    whole = slice_(pod(0), pod(1), of=pool(), started=True)
    assert next_steps(whole, BOUGHT, PATIENCE) == []


def test_a_slice_goes_as_its_pods_and_when_its_machines_are_gone_its_record():
    living = slice_(pod(0), pod(1), of=pool(), nodes=2, deleting=True)
    assert next_steps(living, BOUGHT, PATIENCE) == [DeletePod(pod(0)), DeletePod(pod(1))]
    ending = pod(0, deletionTimestamp=time_text(NOW))
    assert next_steps(slice_(ending, of=pool(), nodes=2, deleting=True), BOUGHT, PATIENCE) == []
    assert next_steps(slice_(of=pool(), deleting=True), BOUGHT, PATIENCE) == []
    assert next_steps(slice_(nodes=2, deleting=True), BOUGHT, PATIENCE) == []
    assert next_steps(slice_(deleting=True), BOUGHT, PATIENCE) == [DeleteRecord()]


def test_a_slice_whose_pool_others_use_is_forgotten_without_it():
    seen = replace(slice_(of=pool(), deleting=True), pool_in_use=True)
    assert next_steps(seen, BOUGHT, PATIENCE) == [DeleteRecord()]


@pytest.mark.parametrize("change", [{"counted": False}, {"youngest": False}])
def test_a_refusal_is_about_the_youngest_slice_that_the_target_counts(change: dict[str, bool]):
    over = pool({"type": "Quota", "status": "False", "reason": "Over"})
    seen = slice_(pod(0), pod(1), of=over, started=True)
    assert next_steps(replace(seen, **change), BOUGHT, PATIENCE) == []


def test_what_coreweave_says_of_more_machines_is_not_about_those_that_are_there():
    over = pool({"type": "Quota", "status": "False", "reason": "Over"})
    seen = slice_(pod(0, "n0"), pod(1, "n1"), of=over, nodes=2, started=True)
    assert next_steps(seen, BOUGHT, PATIENCE) == []


def test_a_pool_of_another_type_than_the_cluster_file_says_is_not_grown():
    other = GroupTemplate(PoolTemplate("gd-8xa100-i128"))
    (step,) = next_steps(slice_(of=pool()), other, PATIENCE)
    assert isinstance(step, Fail)
    assert "has gd-8xh100ib-i128, not gd-8xa100-i128" in step.error.sentence


@pytest.mark.parametrize(("kind", "reason"), [("Quota", "Over"), ("Quota", "NotSet")])
def test_a_quota_that_is_used_up_is_a_refusal(kind: str, reason: str):
    said = {"type": kind, "status": "False", "reason": reason}
    (step,) = next_steps(slice_(pod(0), pod(1), of=pool(said), started=True), BOUGHT, PATIENCE)
    assert isinstance(step, Fail)
    assert isinstance(step.error, QuotaExceeded)


@pytest.mark.parametrize("name", ["Valid", "Validated"])
def test_both_spellings_of_a_pool_that_is_wrong_are_read(name: str):
    said = {"type": name, "status": "False", "reason": "InvalidInstanceType"}
    (step,) = next_steps(slice_(pod(0), pod(1), of=pool(said), started=True), BOUGHT, PATIENCE)
    assert isinstance(step, Fail)
    assert "InvalidInstanceType" in step.error.sentence


def test_a_queue_is_waited_for_as_long_as_patience_lasts():
    said = {"type": "Capacity", "status": "False", "reason": "QueuedAwaitingCapacity"}
    queued = pool({**said, "lastTransitionTime": time_text(NOW)})
    early, late = NOW + PATIENCE * 0.9, NOW + PATIENCE
    waiting = slice_(pod(0), pod(1), of=queued, now=early, started=True)
    assert next_steps(waiting, BOUGHT, PATIENCE) == [Wait(PATIENCE - PATIENCE * 0.9)]
    (step,) = next_steps(slice_(pod(0), pod(1), of=queued, now=late, started=True), BOUGHT, PATIENCE)
    assert isinstance(step, Fail)
    assert isinstance(step.error, NoCapacity)


def test_a_group_that_is_not_in_the_cluster_file_any_more_has_no_slices():
    (step,) = next_steps(slice_(), None, PATIENCE)
    assert isinstance(step, Fail)
    assert "has no scale group h100" in step.error.sentence
