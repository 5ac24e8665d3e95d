"""Which pods leave a node and which do not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Duration
from neorion.keel.kube import ObjectMeta, OwnerReference, time_text
from neorion.keel.kube.core import Pod
from neorion.keel.kube.core.pods import PodSpec, PodStatus, Volume
from neorion.navarch.adapters.kube.drain import (
    DrainContext,
    DrainRules,
    LocalData,
    PodAction,
    describe,
    plan_evictions,
)
from neorion.navarch.testing import NOW, later

HOUR = Duration.of(hours=1)
NONE = Duration(0)


def pod(
    name: str = "web-1",
    *,
    annotations: dict[str, str] | None = None,
    owners: tuple[OwnerReference, ...] = (),
    deleted: str | None = None,
    phase: str = "Running",
    **spec: Any,
) -> Pod:
    meta = ObjectMeta(
        name=name, namespace="team", annotations=annotations or {}, owners=owners, deleted=deleted
    )
    return Pod(meta, PodSpec(**spec), PodStatus(phase=phase))


def scene(left: Duration = HOUR, *, silent: bool = False, **rules: Any) -> DrainContext:
    return DrainContext(NOW, left, silent, DrainRules(**rules))


def way(one: Pod, at: DrainContext) -> PodAction:
    (found,) = plan_evictions([one], at)
    return found.way


def owner(kind: str) -> tuple[OwnerReference, ...]:
    return (OwnerReference("apps/v1", kind, "owner", "uid", controller=True),)


DAEMON = pod(owners=owner("DaemonSet"))
MIRROR = pod(annotations={"kubernetes.io/config.mirror": "x"})
KEPT = pod(annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
LOCAL = pod(volumes=(Volume("scratch", empty_dir={}),))


@pytest.mark.parametrize("one", [DAEMON, MIRROR, pod(phase="Succeeded"), pod(phase="Failed")])
@pytest.mark.parametrize("left", [HOUR, NONE])
def test_what_belongs_to_the_node_and_what_has_ended_stays_even_when_time_is_over(one: Pod, left: Duration):
    assert way(one, scene(left)) is PodAction.STAYS


@pytest.mark.parametrize("one", [pod(), pod(owners=owner("ReplicaSet")), LOCAL])
def test_work_is_asked_to_leave_and_made_to_when_time_is_over(one: Pod):
    assert way(one, scene()) is PodAction.EVICT
    assert way(one, scene(NONE)) is PodAction.DELETE


def test_pods_with_local_data_are_waited_for_if_the_rules_say_so():
    assert way(LOCAL, scene(local_data=LocalData.WAIT)) is PodAction.WAIT
    assert way(LOCAL, scene(NONE, local_data=LocalData.WAIT)) is PodAction.DELETE


def test_a_pod_that_asks_to_be_left_is_waited_for_until_time_is_over():
    assert way(KEPT, scene()) is PodAction.WAIT
    assert way(KEPT, scene(NONE)) is PodAction.DELETE


def test_a_pod_that_stops_is_waited_for_and_not_asked_again():
    assert way(pod(deleted=time_text(later(20))), scene()) is PodAction.STOPPING


def test_a_pod_that_nobody_stops_any_more_holds_nothing_up_on_a_silent_node():
    lost = pod(deleted=time_text(later(-61)))
    assert way(lost, scene()) is PodAction.STOPPING
    assert way(lost, scene(silent=True)) is PodAction.STAYS
    assert way(lost, scene(NONE)) is PodAction.STAYS


def test_a_long_farewell_is_cut_short_when_time_is_over():
    slow = pod(deleted=time_text(later(3_600)))
    assert way(slow, scene()) is PodAction.STOPPING
    (found,) = plan_evictions([slow], scene(NONE))
    assert (found.way, found.grace) == (PodAction.DELETE, Duration.of(seconds=30))


@pytest.mark.parametrize(
    ("own", "left", "rules", "given"),
    [(None, HOUR, None, 30), (300, HOUR, None, 300), (300, HOUR, 60, 60), (7_200, HOUR, None, 3_600), (5, HOUR, 60, 5), (300, NONE, None, 30)],
)  # fmt: skip
def test_grace_is_the_pods_own_within_what_is_left(
    own: int | None, left: Duration, rules: int | None, given: int
):
    grace = None if rules is None else Duration.of(seconds=rules)
    (found,) = plan_evictions([pod(grace_s=own)], scene(left, grace=grace))
    assert found.grace == Duration.of(seconds=given)


def test_the_sentence_names_what_holds_everything_up_first_and_only_a_few():
    many = [pod(f"gone-{number}", deleted=time_text(later(20))) for number in range(5)]
    told = describe(plan_evictions([*many, pod("zeta", annotations=KEPT.meta.annotations)], scene()))
    assert told.startswith("6 pods are left: team/zeta asks by cluster-autoscaler")
    assert told.endswith("; and 3 more")
    assert describe(plan_evictions([], scene())) == "no pods are left but those of the node itself"


@given(
    st.lists(st.sampled_from([DAEMON, MIRROR, KEPT, LOCAL, pod(), pod(phase="Failed")]), max_size=8),
    st.sampled_from(list(LocalData)),
)
def test_when_time_is_over_nothing_is_waited_for(pods: list[Pod], local: LocalData):
    """The law that bounds every drain: each pod stays for good, or is made to leave."""
    found = plan_evictions(pods, scene(NONE, local_data=local))
    assert {one.way for one in found} <= {PodAction.STAYS, PodAction.DELETE}
