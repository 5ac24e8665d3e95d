"""NodePools on a real API server with simulated nodes: what goes wrong with them, and pools that slices share."""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from neorion.capacity.coreweave import NODE_POOL
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.coreweave import FAULT, NOTICE, Fault
from neorion.drydock.simulated import BOOT_TIME
from neorion.iris.adapters.cluster_file import ClusterFile, kubernetes_settings, scale_groups
from neorion.iris.adapters.platforms.kubernetes import KubernetesPlatform
from neorion.iris.adapters.platforms.kubernetes.pools import CORDONED
from neorion.iris.app.cluster import cluster as run_iris
from neorion.iris.cli.exit_status import JobExplanation, why
from neorion.iris.client import AsyncIrisClient
from neorion.iris.model import SliceId, SliceState
from neorion.iris.ports import QuotaNotSet, SliceRequest, SliceStatus
from neorion.keel.base import Duration, Error, NoCapacity, NotFound, QuotaExceeded
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.config import loads
from neorion.keel.kube import DeleteOptions, Kind, KubeObject, MergePatch, Selector
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.core import NAMESPACE, NODE, POD, SECRET, Node
from tests.contracts.test_platform import until, until_gone

pytestmark = [pytest.mark.anyio, pytest.mark.needs("drydock"), pytest.mark.timeout(300)]

ROOM = "iris"
POOL = "iris-iris-h100-8x"
MINE = Selector(labels="iris-managed=true")
PATIENCE_S = 90
LOOK_EVERY = Duration.of(ms=100)
CLOCK = SystemClock()
MODES = ["per_slice", "per_group"]
FILE = """
platform:
  coreweave:
    region: US-EAST-04A
    namespace: iris
    kubeconfig_path: {kubeconfig}
    node_pools: {mode}
    capacity_patience: {patience}
controller: {{ coreweave: {{}} }}
storage: {{ state_dir: /nowhere }}
defaults:
  bootstrap: {{ docker_image: "worker:1" }}
  timeouts: {{ boot_timeout: {boot}, init_timeout: 1s }}
  autoscaler: {{ evaluation_interval: 200ms, scale_up_delay: 0 }}
scale_groups:
  h100_8x:
    {{ accelerator_type: gpu, accelerator_variant: H100, num_vms: {machines}, max_slices: 4,
      resources: {{ cpu: 8, ram: 64Gi, gpu_count: 8 }}, slice_template: {{ coreweave: {{
      instance_type: gd-8xh100ib-i128, compute_class: {compute_class}, annotations: {{ {annotations} }} }} }} }}
"""


@dataclass(frozen=True)
class Setup:
    """What a test changes of the cluster file."""

    mode: str = "per_slice"
    fault: str = ""
    machines: int = 1
    boot: str = "5m"
    patience: str = "10m"
    compute_class: str = "default"
    more: str = f'{BOOT_TIME}: "100ms"'

    def file(self, cloud: Cluster) -> ClusterFile:
        fault = f'{FAULT}: "{self.fault}"' if self.fault else ""
        text = FILE.format(
            kubeconfig=cloud.kubeconfig,
            mode=self.mode,
            patience=self.patience,
            boot=self.boot,
            machines=self.machines,
            compute_class=self.compute_class,
            annotations=", ".join(filter(None, (fault, self.more))),
        )
        return loads(text, ClusterFile, {}, file="cluster.yaml")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    yard = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(tmp_path_factory.mktemp("pools"))})
    try:
        yield anyio.run(yard.up, "pools", ClusterOptions(coreweave=True))
    finally:
        anyio.run(yard.down, "pools")


@pytest.fixture
async def api(cloud: Cluster) -> AsyncGenerator[Client]:
    async with connect(read_kubeconfig([cloud.kubeconfig]).cluster(), "iris") as client:
        await client.apply(NAMESPACE, {"metadata": {"name": ROOM}}, "test")
        yield client
        assert await left(client) == []


async def left(api: Client) -> list[str]:
    """What there is of any slice."""
    kinds: list[Kind[KubeObject]] = [NODE_POOL, POD, SECRET]
    found = [(kind, await api.list(kind, "" if kind is NODE_POOL else ROOM, MINE)) for kind in kinds]
    return [f"{kind.name} {one.meta.name}" for kind, listed in found for one in listed.items]


@asynccontextmanager
async def opened(cloud: Cluster, api: Client, setup: Setup) -> AsyncGenerator[KubernetesPlatform]:
    settings = replace(kubernetes_settings(setup.file(cloud)), acceptance_timeout=Duration.of(seconds=20))
    async with KubernetesPlatform(settings, api, CLOCK, system_rng()) as made:
        yield made


@asynccontextmanager
async def platform(cloud: Cluster, api: Client, setup: Setup) -> AsyncGenerator[KubernetesPlatform]:
    async with opened(cloud, api, setup) as made:
        try:
            yield made
        finally:
            with anyio.fail_after(PATIENCE_S):
                await made.shutdown()


def order(cloud: Cluster, setup: Setup) -> SliceRequest:
    (group,) = scale_groups(setup.file(cloud))
    piece = SystemIds().new(SliceId)
    return SliceRequest(piece, group.name, group.machines, group.shape, (), "here:1", "s3cret")


async def up(made: KubernetesPlatform, wanted: SliceRequest) -> SliceStatus:
    changes = made.changes()
    await made.create_slice(wanted)
    seen = await made.describe(wanted.id)
    return (
        seen
        if seen.state is SliceState.BOOTSTRAPPING
        else await until(changes, wanted.id, SliceState.BOOTSTRAPPING)
    )


async def nodes(api: Client) -> dict[str, Node]:
    return {node.meta.name: node for node in (await api.list(NODE, select=MINE)).items}


async def node_of(api: Client, piece: SliceId) -> Node:
    (found,) = [one for one in (await nodes(api)).values() if one.meta.labels.get("iris-slice-id") == piece]
    return found


async def target(api: Client) -> int | None:
    return (await api.get(NODE_POOL, POOL)).spec.target_nodes


# Each fault with what the buyer is told, and what a waiting job says of it.
REFUSED = [
    (Fault.QUOTA, (QuotaExceeded, "iris.quota"), "group_quota"),
    (Fault.QUOTA_NOT_SET, (QuotaNotSet, "iris.quota_not_set"), "group_no_quota"),
    (Fault.NO_CAPACITY, (NoCapacity, "iris.no_capacity"), "group_capacity"),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fault", "told"),
    [(fault, told) for fault, told, _ in REFUSED],
    ids=lambda one: one if isinstance(one, Fault) else "",
)
async def test_a_refusal_has_its_type_and_leaves_nothing(
    cloud: Cluster, api: Client, mode: str, fault: Fault, told: tuple[type[Error], str]
):
    family, code = told
    setup = Setup(mode, fault)
    async with platform(cloud, api, setup) as made:
        with pytest.raises(family) as refused:
            await made.create_slice(order(cloud, setup))
        assert refused.value.code == code
        assert await made.list_all_slices() == []
        assert await left(api) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [(Fault.QUEUED, "QueuedAwaitingCapacity"), (Fault.CAPACITY_UNKNOWN, "CapacityUnknown")],
)
async def test_a_queue_is_waited_for_and_then_given_up(
    cloud: Cluster, api: Client, mode: str, fault: Fault, reason: str
):
    setup = Setup(mode, fault, patience="2s")
    async with opened(cloud, api, setup) as made:
        changes = made.changes()
        wanted = order(cloud, setup)
        async with anyio.create_task_group() as group:
            group.start_soon(_refused_for_capacity, made, wanted)
            waiting = await until(changes, wanted.id, SliceState.CREATING)
            while reason not in waiting.message:
                waiting = await until(changes, wanted.id, SliceState.CREATING)
        assert await made.list_all_slices() == []


async def _refused_for_capacity(made: KubernetesPlatform, wanted: SliceRequest) -> None:
    with pytest.raises(NoCapacity):
        await made.create_slice(wanted)


JOBS = [
    *((fault, reason) for fault, _, reason in REFUSED),
    (Fault.QUEUED, "booting"),
    (Fault.SLOW_BOOT, "booting"),
    (Fault.NEVER_READY, "group_backoff"),
]


@pytest.mark.usefixtures("api")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("fault", "code"), JOBS, ids=str)
async def test_a_waiting_job_names_the_fault_and_is_not_lost(
    cloud: Cluster, api: Client, tmp_path: Path, mode: str, fault: Fault, code: str
):
    setup = Setup(mode, fault, boot="2s" if fault is Fault.NEVER_READY else "5m")
    async with (
        run_iris(setup.file(cloud), tmp_path, ("127.0.0.1", 0)) as running,
        AsyncIrisClient.remote(running.address, token=running.token) as client,
    ):
        job = await client.submit(["true"], "train", resources={"gpu": "H100:8"})
        told = await _told(client, job.name, code)
        assert "h100_8x" in told.sentence
        assert (await client.get(job.name)).state == "pending"
        await client.cancel(job.name)
    # Only now the autoscaler begins no slice any more.
    async with platform(cloud, api, setup):
        pass


async def _told(client: AsyncIrisClient, job: str, code: str) -> JobExplanation:
    told = why(await client.get(job))
    with anyio.fail_after(PATIENCE_S):
        while told.code != code:
            await CLOCK.sleep(LOOK_EVERY)
            told = why(await client.get(job))
    return told


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fault", "compute_class", "words"),
    [
        (Fault.NODE_LOST, "default", "the node no longer reports its status"),
        (Fault.SPOT_RECLAIM, "spot", "CoreWeave reclaims the spot machine"),
    ],
    ids=["node-lost", "spot-reclaim"],
)
async def test_a_machine_that_goes_fails_its_slice_and_another_takes_its_place(
    cloud: Cluster, api: Client, mode: str, fault: Fault, compute_class: str, words: str
):
    setup = Setup(mode, compute_class=compute_class, more=f'{BOOT_TIME}: "100ms", {NOTICE}: "3s"')
    async with platform(cloud, api, setup) as made:
        first, second = order(cloud, setup), order(cloud, setup)
        changes = made.changes()
        await up(made, first)
        (pool,) = (await api.list(NODE_POOL, select=MINE)).items
        lost = MergePatch({"metadata": {"annotations": {FAULT: fault}}})
        await api.patch(NODE_POOL, pool.meta.name, lost)
        seen = await until(changes, first.id, SliceState.FAILED)
        assert (words in seen.message, seen.hosts) == (True, ())
        if fault is Fault.SPOT_RECLAIM:
            assert (await node_of(api, first.id)).meta.labels["node.coreweave.cloud/pending-state"]
        changes = made.changes()
        await made.terminate(first.id)
        await up(made, second)
        if fault is Fault.NODE_LOST:
            # Its kubelet never reports the end of its Pods: its machine may still run them.
            assert (await made.describe(first.id)).state is SliceState.DELETING
            # Otherwise the fault takes the next node when this one is gone.
            healed = MergePatch({"metadata": {"annotations": {FAULT: None}}})
            await api.patch(NODE_POOL, pool.meta.name, healed)
            await _end_pods(api)
        await until_gone(made, changes, first.id)
        assert (await made.describe(second.id)).state is SliceState.BOOTSTRAPPING


async def _end_pods(api: Client) -> None:
    """As the garbage collector of Pods does, minutes after their node is gone."""
    for pod in (await api.list(POD, ROOM, MINE)).items:
        if pod.meta.deleted is not None:
            with suppress(NotFound):
                await api.delete(POD, pod.meta.name, ROOM, DeleteOptions(grace=Duration(0)))


async def test_slices_share_a_pool_that_grows_and_gives_back_the_emptied_node(cloud: Cluster, api: Client):
    setup = Setup("per_group")
    orders = [order(cloud, setup) for _ in range(3)]
    async with opened(cloud, api, setup) as made:
        for number, wanted in enumerate(orders):
            await up(made, wanted)
            assert await target(api) == number + 1
        (pool,) = (await api.list(NODE_POOL, select=MINE)).items
        assert pool.meta.name == POOL
        assigned = {one.id: (await node_of(api, one.id)).meta.name for one in orders}
        assert len(set(assigned.values())) == 3
    # A later controller finds them where they are.
    async with platform(cloud, api, setup) as made:
        pods = {pod.meta.name: pod.meta.uid for pod in (await api.list(POD, ROOM, MINE)).items}
        first, middle, last = (one.id for one in orders)
        # CoreWeave may take idle nodes only; the one that is given back is cordoned when the target falls.
        seen: list[tuple[int | None, bool]] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_observe, api, assigned[middle], seen)
            await made.terminate(middle)
            await until_gone(made, made.changes(), middle)
            with anyio.fail_after(PATIENCE_S):
                while assigned[middle] in await nodes(api):
                    await CLOCK.sleep(LOOK_EVERY)
            group.cancel_scope.cancel()
        assert await target(api) == 2
        assert [cordoned for wanted, cordoned in seen if wanted == 2] == [True] * sum(
            wanted == 2 for wanted, _ in seen
        )
        for kept in (first, last):
            assert (await node_of(api, kept)).meta.name == assigned[kept]
        after = {pod.meta.name: pod.meta.uid for pod in (await api.list(POD, ROOM, MINE)).items}
        assert after == {
            name: uid for name, uid in pods.items() if str(middle).removeprefix("slice-") not in name
        }


async def _observe(api: Client, node: str, seen: list[tuple[int | None, bool]]) -> None:
    while True:
        found = (await nodes(api)).get(node)
        wanted = await target(api)
        if found is not None:
            again = (await nodes(api)).get(node, found)
            seen.append((wanted, again.spec.unschedulable and CORDONED in again.meta.annotations))
        await CLOCK.sleep(Duration.of(ms=20))


async def test_a_node_that_was_emptied_serves_the_next_slice(cloud: Cluster, api: Client):
    setup = Setup("per_group")
    first, second = order(cloud, setup), order(cloud, setup)
    async with platform(cloud, api, setup) as made:
        await up(made, first)
        node = await node_of(api, first.id)
        # No more machines for now: the second can only have the first one's.
        held = MergePatch({"metadata": {"annotations": {FAULT: Fault.QUEUED}}})
        await api.patch(NODE_POOL, POOL, held)
        async with anyio.create_task_group() as group:
            group.start_soon(made.create_slice, second)
            await until(made.changes(), second.id, SliceState.CREATING)
            await made.terminate(first.id)
            await until(made.changes(), second.id, SliceState.BOOTSTRAPPING)
            group.cancel_scope.cancel()
        reused = await node_of(api, second.id)
        assert (reused.meta.uid, reused.spec.unschedulable) == (node.meta.uid, False)
        assert CORDONED not in reused.meta.annotations


async def test_a_slice_of_two_machines_gets_both_or_none(cloud: Cluster, api: Client):
    setup = Setup("per_group", machines=2)
    first, second = order(cloud, setup), order(cloud, setup)
    async with platform(cloud, api, setup) as made:
        assert len((await up(made, first)).hosts) == 2
        over = MergePatch({"metadata": {"annotations": {FAULT: Fault.QUOTA}}})
        await api.patch(NODE_POOL, POOL, over)
        with pytest.raises(QuotaExceeded):
            await made.create_slice(second)
        (kept,) = await made.list_all_slices()
        assert (kept.id, kept.state, len(kept.hosts)) == (first.id, SliceState.BOOTSTRAPPING, 2)


async def test_a_pool_of_somebody_else_is_left_alone(cloud: Cluster, api: Client):
    setup = Setup("per_group")
    spec = {"instanceType": "gd-8xh100ib-i128", "targetNodes": 0}
    await api.create(NODE_POOL, {"metadata": {"name": POOL}, "spec": spec})
    async with platform(cloud, api, setup) as made:
        with pytest.raises(Error, match="belongs to another installation"):
            await made.create_slice(order(cloud, setup))
    assert (await api.get(NODE_POOL, POOL)).spec.target_nodes == 0
    await api.delete(NODE_POOL, POOL)


async def test_more_than_fifty_pools_are_made_and_given_back_through_a_rate_limit(
    cloud: Cluster, api: Client
):
    setup = Setup(fault=Fault.RATE_LIMIT)
    wanted = [order(cloud, setup) for _ in range(55)]
    async with platform(cloud, api, setup) as made:
        async with anyio.create_task_group() as group:
            for one in wanted:
                group.start_soon(made.create_slice, one)
        with anyio.fail_after(PATIENCE_S):
            while len((await api.list(NODE_POOL, select=MINE)).items) < len(wanted):
                await CLOCK.sleep(LOOK_EVERY)
        assert {seen.trouble for seen in await made.list_all_slices()} == {None}
