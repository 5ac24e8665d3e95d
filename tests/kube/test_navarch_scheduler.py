"""Cordons, marks and drains on a real API server, beside what others do there."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from neorion.capacity.node import marks
from neorion.capacity.provider import MachineId
from neorion.keel.base import Conflict, Duration, NotFound, Retry
from neorion.keel.kube import (
    Bookmark,
    Kind,
    KubeObject,
    KubeStruct,
    MergePatch,
    StrategicMergePatch,
    condition,
)
from neorion.keel.kube.client import Client
from neorion.keel.kube.core import EVENT, NODE, POD, Event
from neorion.keel.kube.core import Node as KubeNode
from neorion.navarch.adapters.kube import DrainRules, KubeScheduler, LocalData
from neorion.navarch.model import Health, NodeState, Origin
from neorion.navarch.testing import ailment, node
from tests.kube.navarch_nodes import PATIENCE_S, kube_node, pod, running, scheduling, stopped, until

# Watches are cut in the middle here.
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("cut_connections")]
HOUR = Duration.of(hours=1)
OVER = Duration(0)
_SPARE = {"key": "team.dev/reserved", "value": "ann", "effect": "NoSchedule"}


class BudgetStatus(KubeStruct, frozen=True):
    current_healthy: int = 0


class Budget(KubeObject, frozen=True):
    status: BudgetStatus = BudgetStatus()


BUDGET = Kind(Budget, "PodDisruptionBudget", "poddisruptionbudgets", "policy")


@pytest.fixture
async def name(api: Client, kube_namespace: str) -> AsyncGenerator[str]:
    """A node of the cluster, called as nobody else's is; somebody has tainted and labelled it."""
    labels = {"rack": "7", "workload": "kept"}
    async with kube_node(api, f"gpu-{kube_namespace}", taints=[_SPARE], metadata={"labels": labels}) as made:
        yield made


@pytest.fixture
async def scheduler(api: Client, name: str) -> AsyncGenerator[KubeScheduler]:
    """Begun after the node was made: of one made later, its mirror would hear in its own time."""
    del name
    async with scheduling(api) as made:
        yield made


def fleet_node(name: str, state: NodeState = NodeState.CORDONED, **changes: Any):
    return node(
        state=state,
        machine_name=name,
        machine=MachineId(f"i-{name}"),
        why="XID 79",
        id=f"node-{name}",
        **changes,
    )


def keys(found: KubeNode) -> set[str]:
    return {taint.key for taint in found.spec.taints}


def holds(found: KubeNode) -> set[str]:
    return {one.type for one in found.status.conditions if one.holds}


async def _budget(api: Client, namespace: str, healthy: int) -> None:
    spec = {"minAvailable": healthy, "selector": {"matchLabels": {"app": "web"}}}
    await api.create(BUDGET, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec})
    await until(api, BUDGET, "web", lambda one: one.status.current_healthy == healthy, namespace)


async def test_a_cordon_is_seen_and_an_uncordon_takes_off_only_our_own(
    api: Client, scheduler: KubeScheduler, name: str
):
    sick = fleet_node(name, health=Health.UNHEALTHY, ailment=ailment())
    await scheduler.cordon(sick, "XID 79")
    found = await api.get(NODE, name)
    assert found.spec.unschedulable
    assert {"team.dev/reserved", marks.CORDONED, marks.UNHEALTHY} <= keys(found)
    assert found.meta.labels[marks.POOL] == "training"
    assert found.meta.labels[marks.NODE_ID] == f"node-{name}"
    assert marks.MAINTENANCE_PLANNED in holds(found)
    assert marks.GPU_HEALTHY not in holds(found)

    await scheduler.uncordon(fleet_node(name, NodeState.ACTIVE))
    found = await api.get(NODE, name)
    assert not found.spec.unschedulable
    assert keys(found) & {marks.CORDONED, marks.UNHEALTHY, "team.dev/reserved"} == {"team.dev/reserved"}
    assert {"Ready", marks.GPU_HEALTHY} <= holds(found)
    assert marks.MAINTENANCE_PLANNED not in {one.type for one in found.status.conditions}
    # The pool's label gives way to what a person wrote.
    assert (found.meta.labels["rack"], found.meta.labels["workload"]) == ("7", "kept")


async def test_a_persons_cordon_outlives_ours(api: Client, scheduler: KubeScheduler, name: str):
    await api.patch(NODE, name, MergePatch({"spec": {"unschedulable": True}}))
    await scheduler.cordon(fleet_node(name), "XID 79")
    await scheduler.uncordon(fleet_node(name, NodeState.ACTIVE))
    assert (await api.get(NODE, name)).spec.unschedulable


async def test_telling_again_writes_nothing(api: Client, scheduler: KubeScheduler, name: str):
    await scheduler.cordon(fleet_node(name), "XID 79")
    before = (await api.get(NODE.raw, name))["metadata"]
    await scheduler.cordon(fleet_node(name), "XID 79")
    async with scheduling(api) as another:
        await another.cordon(fleet_node(name), "XID 79")
    after = (await api.get(NODE.raw, name))["metadata"]
    ours = [
        [one for one in meta["managedFields"] if "navarch" in one["manager"]]  # pyright: ignore[reportIndexIssue] -- as the server has it
        for meta in (before, after)
    ]
    assert ours[0] == ours[1]


async def test_a_node_that_joins_later_is_marked_when_it_does(
    api: Client, scheduler: KubeScheduler, kube_namespace: str
):
    name = f"late-{kube_namespace}"
    await scheduler.cordon(fleet_node(name, NodeState.VERIFYING, health=Health.UNKNOWN), "new")
    async with kube_node(api, name):
        found = await until(api, NODE, name, lambda one: marks.VERIFYING in keys(one))
        assert found.spec.unschedulable


async def test_who_uncordons_a_sick_node_behind_our_back_is_overruled(
    api: Client, scheduler: KubeScheduler, name: str
):
    await scheduler.cordon(fleet_node(name), "XID 79")
    await api.patch(NODE, name, MergePatch({"spec": {"unschedulable": False, "taints": None}}))
    await until(api, NODE, name, lambda one: one.spec.unschedulable and marks.CORDONED in keys(one))


async def test_a_node_that_a_person_keeps_is_left_alone(api: Client, name: str):
    await api.patch(NODE, name, MergePatch({"metadata": {"labels": {marks.DO_NOT_DISRUPT: "true"}}}))
    # A scheduler whose mirror has heard of the label.
    async with scheduling(api) as fresh:
        for call in (
            fresh.cordon(fleet_node(name), "XID 79"),
            fresh.drain(fleet_node(name, NodeState.DRAINING), "XID 79", HOUR),
        ):
            with pytest.raises(Retry) as refused:
                await call
            assert refused.value.code == "navarch.hands_off"
        await fresh.uncordon(fleet_node(name, NodeState.ACTIVE))
    assert marks.NODE_ID not in (await api.get(NODE, name)).meta.labels


async def test_nodes_are_known_by_their_machine_and_never_by_a_name_that_fits_two(
    api: Client, scheduler: KubeScheduler, kube_namespace: str
):
    name = f"ip-{kube_namespace}"
    provider = f"aws:///us-west-2a/i-{kube_namespace}"
    async with kube_node(api, name, providerID=provider):
        await until(api, NODE, name, lambda one: bool(one.spec.provider_id))
        liar = node(2, NodeState.CORDONED, kube_name=name, machine=MachineId("i-other"), why="a lie")
        mine = node(3, NodeState.ACTIVE, machine=MachineId(f"i-{kube_namespace}"))
        await scheduler.uncordon(mine)
        await until(api, NODE, name, lambda one: one.meta.labels.get(marks.NODE_ID) == "node-0003")
        # Its agent, which knows only the name of its node, is found by the same.
        assert {f"i-{kube_namespace}", "node-0003"} <= scheduler.aliases(name)
        await scheduler.cordon(liar, "a lie")
        assert not (await api.get(NODE, name)).spec.unschedulable


async def test_a_node_that_could_be_two_is_nobodys(api: Client, kube_namespace: str):
    first, second = f"one-{kube_namespace}", f"two-{kube_namespace}"
    twice = node(4, NodeState.CORDONED, machine_name=first, kube_name=second)
    async with kube_node(api, first), kube_node(api, second), scheduling(api) as fresh:
        with pytest.raises(Conflict) as refused:
            await fresh.cordon(twice, "x")
        assert refused.value.code == "navarch.two_kube_nodes"


async def test_a_drain_leaves_daemons_and_mirrors_and_tells_when_it_is_done(
    api: Client, scheduler: KubeScheduler, name: str, kube_namespace: str
):
    # Of a group that the garbage collector does not know: it would remove the pod of an owner that is not there.
    daemon = {"apiVersion": "test.dev/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    await running(
        api,
        pod(kube_namespace, "web-1", name),
        pod(kube_namespace, "daemon", name, ownerReferences=[daemon]),
        pod(kube_namespace, "mirror", name, annotations={"kubernetes.io/config.mirror": "x"}),
        pod(kube_namespace, "elsewhere", "another-node"),
    )
    draining = fleet_node(name, NodeState.DRAINING)
    first = await scheduler.drain(draining, "XID 79", HOUR)
    assert (first.done, first.left) == (False, 1)
    assert f"{kube_namespace}/web-1" in first.sentence
    assert marks.DRAIN_IN_PROGRESS in holds(await api.get(NODE, name))
    assert await stopped(api, kube_namespace) == ["web-1"]
    assert (await scheduler.drain(draining, "XID 79", HOUR)).done
    left = {one.meta.name for one in (await api.list(POD, kube_namespace)).items}
    assert left == {"daemon", "mirror", "elsewhere"}


async def test_a_drain_heeds_disruption_budgets_names_them_and_is_resumed_by_whoever_comes_next(
    api: Client, scheduler: KubeScheduler, name: str, kube_namespace: str
):
    await running(api, *(pod(kube_namespace, f"web-{number}", name) for number in (1, 2)))
    await _budget(api, kube_namespace, 2)
    draining = fleet_node(name, NodeState.DRAINING)
    blocked = await scheduler.drain(draining, "XID 79", HOUR)
    assert (blocked.done, blocked.left) == (False, 2)
    assert "disruption budget" in blocked.sentence
    assert all(one.meta.deleted is None for one in (await api.list(POD, kube_namespace)).items)
    found = await api.get(NODE, name)
    told = [one.message for one in found.status.conditions if one.type == marks.DRAIN_IN_PROGRESS]
    assert told == [blocked.sentence]

    await api.delete(BUDGET, "web", kube_namespace)
    async with scheduling(api) as successor:
        with anyio.fail_after(60):
            while not (await successor.drain(draining, "XID 79", HOUR)).done:
                await stopped(api, kube_namespace)
    assert (await api.list(POD, kube_namespace)).items == []


async def test_when_time_is_over_no_budget_keeps_a_sick_node(
    api: Client, scheduler: KubeScheduler, name: str, kube_namespace: str
):
    await running(api, pod(kube_namespace, "web-1", name))
    await _budget(api, kube_namespace, 1)
    assert not (await scheduler.drain(fleet_node(name, NodeState.DRAINING), "XID 79", OVER)).done
    assert await stopped(api, kube_namespace) == ["web-1"]
    assert (await scheduler.drain(fleet_node(name, NodeState.DRAINING), "XID 79", OVER)).done


async def test_pods_with_local_data_are_waited_for_where_the_operator_wants_so(
    api: Client, name: str, kube_namespace: str
):
    body = pod(kube_namespace, "scratch", name)
    body["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    await running(api, body)
    draining = fleet_node(name, NodeState.DRAINING)
    async with scheduling(api, DrainRules(local_data=LocalData.WAIT)) as patient:
        found = await patient.drain(draining, "XID 79", HOUR)
        assert "has data in an emptyDir" in found.sentence
        assert await stopped(api, kube_namespace) == []
        ended = {"status": {"phase": "Succeeded"}}
        await api.patch(POD, "scratch", StrategicMergePatch(ended), kube_namespace, "status")
        assert (await patient.drain(draining, "XID 79", HOUR)).done


async def test_the_node_of_a_machine_that_is_gone_is_removed_and_not_made_again(
    api: Client, scheduler: KubeScheduler, name: str
):
    drained = fleet_node(name, NodeState.DRAINED)
    await scheduler.cordon(drained, "XID 79")
    await scheduler.forget(drained)
    with pytest.raises(NotFound):
        await api.get(NODE, name)
    await scheduler.cordon(drained, "XID 79")
    await scheduler.uncordon(fleet_node(name, NodeState.ACTIVE))
    with pytest.raises(NotFound):
        await api.get(NODE, name)


async def test_machines_of_others_stay_theirs_to_remove(api: Client, scheduler: KubeScheduler, name: str):
    joined = fleet_node(name, NodeState.DRAINED, origin=Origin.JOINED)
    await scheduler.cordon(joined, "XID 79")
    await scheduler.forget(joined)
    assert (await api.get(NODE, name)).spec.unschedulable


async def test_what_is_done_to_a_node_is_told_in_events(api: Client, scheduler: KubeScheduler, name: str):
    sick = fleet_node(name, ailment=ailment(), health=Health.UNHEALTHY)
    await scheduler.cordon(sick, "XID 79")
    assert (await scheduler.drain(fleet_node(name, NodeState.DRAINING), "XID 79", HOUR)).done
    await scheduler.uncordon(fleet_node(name, NodeState.ACTIVE))
    told: dict[str, Event] = {}
    with anyio.fail_after(PATIENCE_S):
        async with api.watch(EVENT, "default") as events:
            async for change in events:
                if not isinstance(change, Bookmark) and change.object.regarding.name == name:
                    told[change.object.reason] = change.object
                # Others tell of nodes too.
                if {"Cordoned", "Drained", "Draining", "Uncordoned"} <= told.keys():
                    break
    assert (told["Cordoned"].type, told["Cordoned"].note) == ("Warning", "Takes no new work: XID 79.")
    assert told["Drained"].type == "Normal"


async def test_a_second_drain_does_not_tell_what_the_first_waited_for(
    api: Client, scheduler: KubeScheduler, name: str
):
    draining = fleet_node(name, NodeState.DRAINING)
    assert (await scheduler.drain(draining, "XID 79", HOUR)).done
    await scheduler.uncordon(fleet_node(name, NodeState.ACTIVE))
    await scheduler.cordon(draining, "XID 79")
    said = condition((await api.get(NODE, name)).status.conditions, marks.DRAIN_IN_PROGRESS)
    assert said is not None
    assert said.message == draining.why
