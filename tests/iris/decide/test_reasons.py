"""Every wait and every refusal is one sentence that says what was asked for and what there is."""

import pytest

from neorion.iris.decide import feasible, schedule
from neorion.iris.model import (
    ClusterView,
    JobId,
    PendingCode,
    PendingReason,
    Placement,
    Resources,
    WorkerShape,
)
from neorion.iris.testing import NOW, job, placement, resources, worker

ANYWHERE = Placement()
GPU = resources("8", "64Gi", "100Gi", gpus=4, variant="H100")
THERE = [
    worker(
        "a", GPU, used=resources("6", "60Gi", "40Gi", gpus=1), part_of="s", attributes={"zone": "us-east-1a"}
    ),
    worker("b", GPU, used=resources("1", "32Gi", gpus=3), part_of="s", attributes={"zone": "us-east-1b"}),
]


def reason(asks: Resources, where: Placement = ANYWHERE, tasks: int = 1) -> PendingReason:
    return schedule(ClusterView(THERE, [job("j", asks, tasks, where=where)]), NOW).reasons[JobId("j")]


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (resources("1", gpus=4), "It needs 4 GPUs on one worker; the best has 3 GPUs free."),
        (resources("7500m", "1Gi"), "It needs 7.5 cores on one worker; the best has 7 cores free."),
        (resources("1", "48Gi"), "It needs 48Gi of memory on one worker; the best has 32Gi free."),
        (resources("1", "1Gi", "1Ti"), "It needs 1Ti of disk on one worker; the best has 100Gi free."),
        # Each is to be had, but not on one worker: the one with enough GPUs lacks cores.
        (resources("4", gpus=2), "It needs 4 cores on one worker; the best has 2 cores free."),
        (resources("1", gpus=1, variant="A100"), "No worker has A100 GPUs."),
    ],
)
def test_a_shortage_says_what_is_wanted_and_what_is_free(asks: Resources, says: str):
    assert reason(asks).sentence == says


@pytest.mark.parametrize(
    ("where", "says", "hint"),
    [
        (placement("zone=us-east-1c"), "No worker meets zone=us-east-1c.", 'did you mean "us-east-1b"?'),
        (placement("zome=us-east-1a"), "No worker meets zome=us-east-1a.", 'did you mean "zone"?'),
        (
            placement("zone=us-east-1a", "zone!=us-east-1a"),
            "No worker meets zone=us-east-1a with zone!=us-east-1a.",
            "Drop the constraint, or see the workers' attributes with: iris worker list -o wide.",
        ),
        (
            placement(gang="zonne"),
            "Its tasks start together within one zonne, and no worker has the attribute zonne.",
            'did you mean "zone"?',
        ),
    ],
)
def test_a_constraint_that_nobody_meets_is_named_with_what_may_have_been_meant(
    where: Placement, says: str, hint: str
):
    found = reason(resources("1"), where)
    assert (found.sentence, found.hint) == (says, hint)


def test_a_gang_says_how_much_of_it_would_fit():
    found = reason(resources("1", gpus=1), placement(gang="slice"), 6)
    assert found.sentence == "Its 6 tasks start together, and there is room for 3 of them within one slice."
    assert found.hint == "Request 3 replicas instead of 6 to start now."


def test_without_workers_there_is_not_much_to_say():
    found = schedule(ClusterView([], [job("j", resources("1"))]), NOW).reasons[JobId("j")]
    assert (found.code, found.sentence) == (PendingCode.NO_WORKERS, "No worker has joined yet.")


@pytest.mark.parametrize("code", PendingCode)
@pytest.mark.parametrize("best", [0, 1])
def test_every_wait_says_what_would_help(code: PendingCode, best: int):
    assert PendingReason(code, 8, best, "thing").hint
    for never in (False, True):
        # Nobody is told to ask for nothing.
        assert best or " 0 " not in f" {PendingReason(code, 8, best, 'thing', never=never).hint} "


def test_every_code_has_a_sentence_and_amounts_that_differ_read_differently():
    for code in PendingCode:
        for never in (False, True):
            found = PendingReason(code, 2**36 + 1, 2**36, "thing", never=never)
            assert found.sentence.endswith(".")
            assert "{" not in found.sentence + found.hint
    assert (
        "needs 65537Mi of memory on one worker; the best has 64Gi"
        in PendingReason(PendingCode.MEMORY_SHORT, 2**36 + 1, 2**36).sentence
    )


SHAPES = [
    WorkerShape(GPU, {"zone": "us-east-1a", "pool": "h100"}, per_slice=2, slices=3),
    WorkerShape(resources("64", "256Gi"), {"zone": "us-east-1b"}, slices=100),
]


@pytest.mark.parametrize(
    ("asks", "where", "replicas", "says"),
    [
        (resources(gpus=8), Placement(), 1, "It needs 8 GPUs on one worker; the largest has 4 GPUs."),
        (resources("96"), Placement(), 1, "It needs 96 cores on one worker; the largest has 64 cores."),
        (
            resources(gpus=4),
            placement(gang="slice"),
            3,
            "Its 3 tasks start together, and one slice can never hold more than 2 of them.",
        ),
        (
            resources(gpus=4),
            placement(gang="pool"),
            7,
            "Its 7 tasks start together, and one pool can never hold more than 6 of them.",
        ),
        (
            resources(gpus=3),
            placement(gang="worker"),
            2,
            "Its 2 tasks start together, and one worker can never hold more than 1 of them.",
        ),
        (resources(gpus=1, variant="H10"), Placement(), 1, "No worker has H10 GPUs."),
    ],
)
def test_what_can_never_run_is_refused(asks: Resources, where: Placement, replicas: int, says: str):
    found = feasible(asks, where, replicas, SHAPES)
    assert found is not None
    assert found.sentence == says


def test_a_refusal_suggests_what_may_have_been_meant():
    assert_hint(feasible(resources(gpus=1, variant="H10"), Placement(), 1, SHAPES), 'did you mean "H100"?')
    assert_hint(feasible(resources(), placement("zonee=us-east-1a"), 1, SHAPES), 'did you mean "zone"?')
    assert_hint(feasible(resources(), placement(gang="pol"), 1, SHAPES), 'did you mean "pool"?')


def assert_hint(found: PendingReason | None, hint: str) -> None:
    assert found is not None
    assert found.hint == hint


def test_nothing_runs_where_there_is_nothing():
    found = feasible(resources(), Placement(), 1, [])
    assert found is not None
    assert found.sentence == "The cluster has no worker, and no scale group that can create one."


def test_what_fits_on_empty_workers_is_let_in():
    assert feasible(resources(gpus=4, variant="H100"), placement(gang="slice"), 2, SHAPES) is None
    assert feasible(resources("1"), placement(gang="zone"), 6400, SHAPES) is None
    assert feasible(resources("1"), Placement(), 10**6, SHAPES) is None
