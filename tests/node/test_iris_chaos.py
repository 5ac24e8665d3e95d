"""kill -9 of controller, workers, API server and nodes of one cluster, while jobs run: no value is lost, none comes twice, nothing stays."""

import os
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.node import bring_up, find, init_pid
from neorion.iris.client import AsyncIrisClient
from neorion.keel.base import Duration, Error
from neorion.keel.clock import Rng, SystemClock
from neorion.keel.clock.virtual import seeded_rng
from neorion.keel.run import Backoff, retry
from tests.node.folder_server import folder_server, put_file
from tests.node.iris_images import push_images
from tests.node.iris_installation import Installation, cluster_file, installed
from tests.node.pod_processes import pod_processes
from tests.node.pods import NEEDS, Kubectl

pytestmark = [
    pytest.mark.anyio,
    NEEDS,
    pytest.mark.needs("drydock", "mmdebstrap"),
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]

NODES = ("node1", "node2")
SECONDS = float(os.environ.get("NEORION_CHAOS_SECONDS", "300"))
# Callers at once, each with one job after the other.
LINES = 4
# A controller or a node that was killed is spared for as long as the kubelet's patience with containers that crash grows.
SPARED_S = 40.0
LOOK_EVERY = Duration.of(ms=200)
PATIENCE_S = 400
# As long as a node may be away, and its controller with it.
BACKOFF = Backoff(first=Duration.of(seconds=1), most=Duration.of(seconds=3), attempts=120)
CLOCK = SystemClock()
T = TypeVar("T")


def marking(store: str, name: str, seconds: float) -> Callable[[], str]:
    """A task that says several times a second that it runs."""

    def task() -> str:
        attempt = os.environ["IRIS_ATTEMPT_UID"]
        clock = SystemClock()
        until = clock.monotonic() + seconds
        while True:
            with suppress(OSError):
                put_file(store, f"{name}.{attempt}")
            if clock.monotonic() >= until:
                return attempt
            threading.Event().wait(0.2)

    return task


class Marks:
    """The attempts of each task in the order in which they were heard. One that speaks after a later one ran beside it."""

    def __init__(self) -> None:
        self._heard: dict[str, list[str]] = {}
        self.doubled: list[str] = []

    def hear(self, mark: str) -> None:
        name, _, attempt = mark.partition(".")
        heard = self._heard.setdefault(name, [])
        if attempt not in heard:
            heard.append(attempt)
        elif heard[-1] != attempt:
            self.doubled.append(mark)

    def last(self, name: str) -> str:
        return self._heard[name][-1]


class Storm:
    """Kills one thing at a time, and starts again what no kubelet would."""

    def __init__(self, iris: Installation, cluster: Cluster, rng: Rng) -> None:
        self._iris = iris
        self._cluster = cluster
        self._rng = rng
        self._spared = {"controller": 0.0, "worker": 0.0, "api": 0.0, "node": 0.0}
        self.struck: dict[str, int] = dict.fromkeys(self._spared, 0)

    async def strike(self) -> None:
        now = CLOCK.monotonic()
        choices = [kind for kind, until in self._spared.items() if now >= until]
        if not choices:
            return
        kind = self._rng.choice(choices)
        if await getattr(self, f"_kill_{kind}")():
            self.struck[kind] += 1
            self._spared[kind] = CLOCK.monotonic() + (0 if kind == "api" else SPARED_S)

    async def _kill_controller(self) -> bool:
        return await self._kill_in("--selector=app=iris-controller", "iris.cluster.controller.main")

    async def _kill_worker(self) -> bool:
        return await self._kill_in("--selector=iris-worker-number", "iris.cluster.worker.main")

    async def _kill_in(self, selector: str, words: str) -> bool:
        pods = (await self._iris.kubectl.get("pods", selector))["items"]
        found = [pid for pod in pods for pid in pod_processes(pod["metadata"]["uid"], words)]
        if found:
            os.kill(self._rng.choice(found), signal.SIGKILL)
        return bool(found)

    async def _kill_api(self) -> bool:
        await self._cluster.stop("kube-apiserver")
        await CLOCK.sleep(Duration.of(seconds=self._rng.uniform(0, 8)))
        await self._cluster.start_control_plane()
        return True

    async def _kill_node(self) -> bool:
        name = self._rng.choice(NODES)
        os.kill(init_pid(self._cluster.layout, name), signal.SIGKILL)
        await CLOCK.sleep(Duration.of(seconds=self._rng.uniform(0, 25)))
        await bring_up(self._cluster, find(self._cluster.layout, name))
        return True


@pytest.fixture
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Cluster]:
    """Of its own: its API server and its nodes are killed."""
    state = tmp_path_factory.mktemp("chaos")
    manager = ClusterManager.of({**os.environ, "XDG_STATE_HOME": str(state)})
    try:
        made = await manager.up("chaos", ClusterOptions(nodes=len(NODES)))
        await push_images(made)
        yield made
    finally:
        await manager.down("chaos")


async def submit_and_wait(client: AsyncIrisClient, store: str, marks: Marks, name: str, rng: Rng) -> None:
    async def patiently(call: Callable[[], Awaitable[T]]) -> T:
        return await retry(call, BACKOFF, CLOCK, rng)

    work = marking(store, name, rng.choice((0.0, 1.0, 5.0)))
    small = {"cpu": 0.1, "memory": "64Mi"}
    job = await patiently(
        lambda: client.submit(work, name, key=name, resources=small, retries=1_000, preemption_retries=1_000)
    )
    value = await patiently(lambda: client.wait(job, timeout=PATIENCE_S))
    assert value == marks.last(name), "the value is not the last attempt's"
    assert value == await patiently(lambda: client.wait(job, timeout=60)), "the value has changed"


async def ordeal(cluster: Cluster, folder: Path, seconds: float, seed: int) -> tuple[int, dict[str, int]]:
    rng, marks = seeded_rng(seed), Marks()
    jobs, lines = 0, LINES
    (folder / "store").mkdir()
    kubectl = Kubectl(cluster, "iris")
    await kubectl("create", "namespace", "iris")
    with folder_server(folder / "store", str(cluster.layout.addresses.host), marks.hear) as store:
        async with installed(kubectl, folder, cluster_file("iris")) as iris, iris.client() as client:
            storm = Storm(iris, cluster, rng)
            until = CLOCK.monotonic() + seconds

            async def demand(line: int) -> None:
                nonlocal jobs, lines
                number = 0
                while CLOCK.monotonic() < until:
                    number += 1
                    await submit_and_wait(client, store, marks, f"job-{line}-{number}", rng)
                    jobs += 1
                lines -= 1

            async with anyio.create_task_group() as group:
                for line in range(LINES):
                    group.start_soon(demand, line)
                while CLOCK.monotonic() < until:
                    await CLOCK.sleep(Duration.of(seconds=rng.uniform(2, 10)))
                    with suppress(Error):
                        await storm.strike()
            with anyio.fail_after(PATIENCE_S):
                # Idle slices go by themselves, those that were lost, too.
                while await iris.left():
                    await CLOCK.sleep(LOOK_EVERY)
    assert marks.doubled == []
    # The namespace goes with all that is in it, a moment after `down` has returned.
    await kubectl("wait", "--for=delete", "namespace/iris", "--timeout=120s")
    return jobs, storm.struck


@pytest.mark.parametrize("seed", [1])
async def test_everything_may_be_killed_for_minutes(
    cluster: Cluster, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
):
    jobs, struck = await ordeal(cluster, tmp_path, SECONDS, seed)
    with capsys.disabled():
        print(f"\n{jobs} jobs under {struck}")  # noqa: T201 -- figures for the reader
    assert jobs >= LINES
    # Half of a minute for each kill, of which some last as long as a node is away.
    assert sum(struck.values()) >= SECONDS / 30, struck
