"""Slices of worker Pods beyond the contract: what the objects say, and what a later controller makes of leftovers."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from neorion.capacity.coreweave import NODE_POOL
from neorion.iris.adapters.platforms.fault_injection import FaultProfile
from neorion.iris.adapters.platforms.kubernetes import KubernetesSettings, QuotaExhaustedError
from neorion.iris.adapters.platforms.kubernetes.applier import Applier
from neorion.iris.adapters.platforms.kubernetes.names import Names
from neorion.iris.app.runtime import task_pods
from neorion.iris.model import ScaleFailureKind, SliceId, SliceState
from neorion.keel.base import Duration
from neorion.keel.clock import seeded_rng
from neorion.keel.kube import DeleteOptions, Kind, KubeObject, MergePatch, ObjectKey, time_text
from neorion.keel.kube.control import InformerFactory
from neorion.keel.kube.core import NODE, POD, SECRET
from neorion.keel.kube.testing import MemoryApi
from tests.contracts.test_platform import order, until, until_gone
from tests.iris.kubernetes_stage import NAMESPACE, KubernetesStage

pytestmark = pytest.mark.anyio

SLICE = "iris-h100-a"
AT_ONCE = Duration(0)


@pytest.fixture
async def stage() -> AsyncGenerator[KubernetesStage]:
    made = KubernetesStage(pools=True)
    async with made.running():
        yield made


def user(stage: KubernetesStage) -> MemoryApi:
    return MemoryApi(stage.cluster, stage.clock, "operator")


def names(stage: KubernetesStage, kind: Kind[KubeObject]) -> list[str]:
    return sorted(key.name for key in stage.cluster.entries(kind))


async def test_a_group_whose_tasks_are_pods_has_small_workers_that_may_make_them(stage: KubernetesStage):
    def with_task_pods(usual: KubernetesSettings) -> KubernetesSettings:
        groups = {name: replace(group, task_pods=True) for name, group in usual.groups.items()}
        return replace(usual, groups=groups, task_image="task:1")

    async with stage.open(settings=with_task_pods) as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=1))
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
    pod = stage.cluster.entries(POD)[ObjectKey(NAMESPACE, f"iris-worker-{SLICE}")].body
    assert pod["spec"]["serviceAccountName"] == "iris-task-pods"
    (container,) = pod["spec"]["containers"]
    assert "nvidia.com/gpu" not in container["resources"]["limits"]
    assert "--runtime=kubernetes" in container["command"]
    (flag,) = [word for word in container["command"] if word.startswith("--task-pods=")]
    own = {"IRIS_POD_NAME": pod["metadata"]["name"], "IRIS_POD_UID": "u"}
    made = task_pods(flag.removeprefix("--task-pods="), own)
    assert made is not None
    assert (made.image, made.worker, made.namespace) == ("task:1", "u", NAMESPACE)
    assert made.node_selector == {"iris-slice-id": "slice-a"}
    # By this label machines are kept to one worker each.
    assert "iris-slice-id" not in made.labels


async def test_the_slice_its_pool_its_nodes_and_its_pods_carry_the_documents_labels(stage: KubernetesStage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order(machines=2))
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
    api = user(stage)
    pool, node = await api.get(NODE_POOL, SLICE), await api.get(NODE, f"{SLICE}-0")
    pod = await api.get(POD, f"iris-worker-{SLICE}-1", NAMESPACE)
    for thing in (pool, node, pod):
        labels = thing.meta.labels
        assert (labels["iris-managed"], labels["iris-scale-group"]) == ("true", "h100")
        assert labels["iris-slice-id"] == "slice-a"
    assert pod.spec.node_selector == {"iris-slice-id": "slice-a"}
    assert pod.spec.containers[0].resources.limits == {"nvidia.com/gpu": "8"}
    assert {pod.spec.node_name for pod in (await api.list(POD)).items} == {f"{SLICE}-0", f"{SLICE}-1"}


async def test_the_token_is_a_file_of_the_pod_and_nowhere_in_its_spec(stage: KubernetesStage):
    async with stage.open() as platform:
        await platform.create_slice(order())
    api = user(stage)
    pod = await api.get(POD.raw, f"iris-worker-{SLICE}", NAMESPACE)
    assert "s3cret" not in str(pod)
    assert (await api.get(SECRET, SLICE, NAMESPACE)).value("token") == b"s3cret"
    assert "--token-file=/var/run/secrets/iris/token" in str(pod)
    assert f"'secretName': '{SLICE}'" in str(pod)


async def test_a_worker_pod_has_what_the_final_review_asks_for(stage: KubernetesStage):
    async with stage.open(settings=lambda usual: replace(usual, host_network=True)) as platform:
        await platform.create_slice(order())
    pod = await user(stage).get(POD.raw, f"iris-worker-{SLICE}", NAMESPACE)
    spec = pod["spec"]
    assert isinstance(spec, dict)
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert spec["restartPolicy"] == "Always"
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    address = {"name": "IRIS_VM_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    assert address in container["env"]
    assert container["command"][:5] == ["python", "-P", "-m", "iris.cluster.worker.main", "serve"]


async def test_a_slice_whose_controller_died_before_its_pods_is_finished_by_the_next(stage: KubernetesStage):
    async with stage.open() as platform:
        await platform.create_slice(order())
    api = user(stage)
    # As it was before anything but the record had been written.
    marks = {"neorion.dev/slice-started": None}
    await api.patch(SECRET, SLICE, MergePatch({"metadata": {"annotations": marks}}), NAMESPACE)
    await api.delete(POD, f"iris-worker-{SLICE}", NAMESPACE, DeleteOptions(grace=AT_ONCE))
    await api.delete(NODE_POOL, SLICE)
    async with stage.open() as platform:
        await until(platform.changes(), order().id, SliceState.BOOTSTRAPPING)
    assert names(stage, NODE_POOL) == [SLICE]


async def test_a_slice_whose_controller_died_while_it_ended_it_is_ended_by_the_next(stage: KubernetesStage):
    async with stage.open() as platform:
        await platform.create_slice(order())
    marks = {"neorion.dev/slice-deleting": "true"}
    await user(stage).patch(SECRET, SLICE, MergePatch({"metadata": {"annotations": marks}}), NAMESPACE)
    async with stage.open() as platform:
        await until_gone(platform, platform.changes(), order().id)
    assert names(stage, NODE_POOL) == names(stage, POD) == names(stage, SECRET) == []


async def test_a_pool_without_a_record_is_given_back_and_one_of_another_installation_is_not(
    stage: KubernetesStage,
):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
    api = user(stage)
    await api.delete(SECRET, SLICE, NAMESPACE)
    labels = {"iris-managed": "true", "iris-namespace": "other", "iris-scale-group": "h100"}
    other = {"metadata": {"name": "iris-h100-b", "labels": {**labels, "iris-slice-id": "slice-b"}}}
    await api.create(NODE_POOL, {**other, "spec": {"instanceType": "gd-8xh100ib-i128", "targetNodes": 0}})
    async with stage.open():
        with anyio.fail_after(30):
            async with api.watch(NODE_POOL) as events:
                async for _ in events:
                    if names(stage, NODE_POOL) == ["iris-h100-b"]:
                        break
    assert names(stage, NODE_POOL) == ["iris-h100-b"]


async def test_a_refusal_that_comes_late_fails_the_slice_with_its_kind(stage: KubernetesStage):
    impatient = {"h100": FaultProfile(quota=0)}
    async with stage.open(impatient, lambda usual: replace(usual, acceptance_timeout=AT_ONCE)) as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        seen = await until(changes, order().id, SliceState.FAILED)
        assert seen.trouble is ScaleFailureKind.QUOTA
        assert "The target exceeds the quota" in seen.message
        await platform.terminate(order().id)
        await until_gone(platform, changes, order().id)
    assert names(stage, NODE_POOL) == names(stage, POD) == names(stage, SECRET) == []


async def test_a_refused_slice_leaves_nothing(stage: KubernetesStage):
    async with stage.open({"h100": FaultProfile(quota=0)}) as platform:
        with pytest.raises(QuotaExhaustedError):
            await platform.create_slice(order(machines=2))
    assert names(stage, NODE_POOL) == names(stage, POD) == names(stage, SECRET) == []


async def test_a_pool_that_somebody_deletes_fails_its_slice(stage: KubernetesStage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
        await user(stage).delete(NODE_POOL, SLICE)
        seen = await until(changes, order().id, SliceState.FAILED)
        assert seen.message == f"The NodePool {SLICE} was deleted."


async def test_an_image_that_cannot_be_pulled_fails_the_slice_in_the_kubelets_words(stage: KubernetesStage):
    async with stage.open() as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        await until(changes, order().id, SliceState.BOOTSTRAPPING)
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "worker:1"'}
        status = {"containerStatuses": [{"name": "iris-worker", "state": {"waiting": waiting}}]}
        name = f"iris-worker-{SLICE}"
        await user(stage).patch(POD, name, MergePatch({"status": status}), NAMESPACE, "status")
        seen = await until(changes, order().id, SliceState.FAILED)
        assert f'{name} on {SLICE}-0 cannot start: ImagePullBackOff: Back-off pulling image "worker:1"' in (
            seen.message
        )


async def test_a_slice_waits_in_the_queue_and_is_refused_when_patience_is_over(stage: KubernetesStage):
    patience = Duration.of(minutes=10)
    async with stage.open(
        {"h100": FaultProfile(stuck=1)}, lambda usual: replace(usual, capacity_patience=patience)
    ) as platform:
        changes = platform.changes()
        await platform.create_slice(order())
        await _queue(stage)
        waiting = await until(changes, order().id, SliceState.CREATING)
        while "QueuedAwaitingCapacity" not in waiting.message:
            waiting = await until(changes, order().id, SliceState.CREATING)
        stage.clock.advance(patience)
        # Any change makes the platform look; alone it would look when the patience is over.
        await user(stage).patch(
            NODE_POOL, SLICE, MergePatch({"metadata": {"annotations": {"look": "again"}}})
        )
        seen = await until(changes, order().id, SliceState.FAILED)
        assert seen.trouble is ScaleFailureKind.NO_CAPACITY


async def _queue(stage: KubernetesStage) -> None:
    """CoreWeave has none now, and keeps the pool in its queue."""
    stage.stop_coreweave()
    await wait_all_tasks_blocked()
    capacity = {"type": "Capacity", "status": "False", "reason": "QueuedAwaitingCapacity", "message": "busy"}
    capacity["lastTransitionTime"] = time_text(stage.clock.now())
    await user(stage).patch(
        NODE_POOL, SLICE, MergePatch({"status": {"conditions": [capacity]}}), "", "status"
    )


async def test_an_unknown_slice_of_another_group_is_left_alone(stage: KubernetesStage):
    async with stage.open() as platform:
        await platform.create_slice(order())
        await platform.terminate(SliceId("slice-b"))
        assert [seen.id for seen in await platform.list_all_slices()] == ["slice-a"]


async def test_workers_of_one_slice_never_share_a_bought_machine(stage: KubernetesStage):
    async with stage.open() as platform:
        await platform.create_slice(order(machines=2))
    pod = await user(stage).get(POD.raw, f"iris-worker-{SLICE}-0", NAMESPACE)
    spec = pod["spec"]
    assert isinstance(spec, dict)
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"] == {"matchLabels": {"iris-slice-id": "slice-a"}}


async def test_a_pool_that_took_the_place_of_another_is_not_deleted_for_it(stage: KubernetesStage):
    stage.stop_coreweave()
    api = user(stage)
    body = {"metadata": {"name": SLICE}, "spec": {"instanceType": "gd-8xh100ib-i128", "targetNodes": 0}}
    seen = await api.create(NODE_POOL, body)
    await api.delete(NODE_POOL, SLICE)
    await api.create(NODE_POOL, body)
    settings = KubernetesSettings(NAMESPACE, "here:1", "worker:1", {})
    informers = InformerFactory(api, stage.clock, seeded_rng(1))
    await Applier(api, informers, settings, Names("iris", NAMESPACE)).delete(NODE_POOL, seen)
    assert names(stage, NODE_POOL) == [SLICE]
