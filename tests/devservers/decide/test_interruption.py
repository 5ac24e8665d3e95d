"""A spot machine that is taken back stops its server; nothing else does."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from neorion.devservers.decide import Decision, Observed, StopServer, decide
from neorion.devservers.model import (
    DevServerSpec,
    DevServerStatus,
    Distributed,
    Lifecycle,
    Mode,
    Phase,
    StopReason,
)
from neorion.devservers.testing import FLAVOR, SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.kube import Condition
from neorion.keel.kube.core import Pod

SPOT = replace(FLAVOR, node_selector={"karpenter.sh/capacity-type": "spot"})
ON_DEMAND = replace(FLAVOR, node_selector={"karpenter.sh/capacity-type": "on-demand"})
SPEC = DevServerSpec(flavor="cpu-small", lifecycle=Lifecycle(auto_shutdown=False))
TAKEN_BACK = Condition("DisruptionTarget", "True", "EvictionByEvictionAPI")


def a_spot_pod(*conditions: Condition, name: str = "mydev-x") -> Pod:
    pod = a_pod(SPOT)
    status = replace(pod.status, conditions=conditions)
    return replace(pod, status=status, meta=replace(pod.meta, name=name))


def decided(*pods: Pod, spec: DevServerSpec = SPEC, since: timedelta = timedelta(0)) -> Decision:
    status = DevServerStatus(phase=Phase.RUNNING, running_since=CREATED + since)
    seen = Observed(a_server(spec, status), a_flavor(SPOT), a_claim(), pods=pods)
    return decide(seen, SETTINGS, CREATED + timedelta(hours=1))


def test_a_server_stops_when_its_spot_machine_is_taken_back():
    decision = decided(a_spot_pod(TAKEN_BACK))
    assert decision.edit == StopServer(StopReason.INTERRUPTED)
    [note] = [one for one in decision.notes if one.reason == "Interrupted"]
    assert note.warning


@pytest.mark.parametrize(
    "told",
    [
        Condition("DisruptionTarget", "True", "PreemptionByScheduler"),
        Condition("DisruptionTarget", "False", "EvictionByEvictionAPI"),
        Condition("Ready", "True"),
    ],
)
def test_nothing_else_of_its_pod_stops_it(told: Condition):
    assert decided(a_spot_pod(told)).edit is None


def test_a_machine_that_is_drained_and_not_spot_is_replaced():
    status = DevServerStatus(phase=Phase.RUNNING, running_since=CREATED)
    seen = Observed(a_server(SPEC, status), a_flavor(ON_DEMAND), a_claim(), pods=(a_spot_pod(TAKEN_BACK),))
    assert decide(seen, SETTINGS, CREATED).edit is None


def test_a_server_that_was_started_again_is_not_stopped_for_its_former_machine():
    assert decided(a_spot_pod(TAKEN_BACK), since=timedelta(minutes=5)).edit is None


@pytest.mark.parametrize(("least", "stops"), [(None, True), (1, False)])
def test_all_ranks_stop_unless_the_run_is_elastic(least: int | None, *, stops: bool):
    distributed = Distributed(world_size=2, min_nodes=least)
    spec = replace(SPEC, mode=Mode.DISTRIBUTED, distributed=distributed)
    pods = (a_spot_pod(name="mydev-0"), a_spot_pod(TAKEN_BACK, name="mydev-1"))
    edit = decided(*pods, spec=spec).edit
    assert edit == (StopServer(StopReason.INTERRUPTED) if stops else None)
