"""Two controller Pods on real nodes with one PostgreSQL: the leader is killed while jobs run, and the other takes over."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from neorion.drydock.cluster import Cluster
from neorion.drydock.testing import namespace
from neorion.keel.base import Duration, Error
from neorion.keel.clock import SystemClock
from tests.keel.store.postgres_server import postgres_server
from tests.node.folder_server import folder_server, get_file, put_file
from tests.node.iris_images import push_images
from tests.node.iris_installation import Installation, cluster_file, installed
from tests.node.pod_processes import pod_processes
from tests.node.pods import NEEDS, Kubectl

pytestmark = [
    pytest.mark.anyio,
    NEEDS,
    pytest.mark.needs("drydock", "mmdebstrap", "postgres"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

JOBS = 24
TAKE_OVER_S = 10.0
PATIENCE_S = 240
LOOK_EVERY = Duration.of(ms=50)
CLOCK = SystemClock()


def waiting(store: str, name: str) -> Callable[[], str]:
    """A task that leaves a mark with its attempt, and ends when there is a file `go`."""

    def task() -> str:
        attempt = os.environ["IRIS_ATTEMPT_UID"]
        put_file(store, f"{name}.{attempt}")
        while get_file(store, "go") is None:
            threading.Event().wait(0.5)
        return f"{name} {attempt}"

    return task


async def test_the_other_controller_takes_over_within_ten_seconds_and_every_value_comes_once(
    node_cluster: Cluster, tmp_path: Path
):
    await push_images(node_cluster)
    host = str(node_cluster.layout.addresses.host)
    store = tmp_path / "store"
    store.mkdir()
    with (
        postgres_server(host, "10.128.0.0/9") as database,
        folder_server(store, host) as address,
    ):
        async with namespace(node_cluster) as name:
            pair = {"replicas": 2, "storage_class": "standard"}
            file = cluster_file(
                name,
                controller={"kubernetes": pair, "worker_timeout": "60s"},
                storage={"database": "${IRIS_DATABASE}"},
            )
            kubectl = Kubectl(node_cluster, name)
            variables = {"IRIS_DATABASE": database.new_schema()}
            async with installed(kubectl, tmp_path, file, variables) as iris, iris.client() as client:
                small = {"cpu": 0.05, "memory": "32Mi"}
                jobs = [
                    await client.submit(
                        waiting(address, f"job-{n}"), f"job-{n}", key=f"key-{n}", resources=small
                    )
                    for n in range(JOBS)
                ]
                with anyio.fail_after(PATIENCE_S):
                    while len(list(store.iterdir())) < JOBS:
                        await CLOCK.sleep(LOOK_EVERY)
                    await _two_controllers(iris)
                leader = await iris.leader()
                took = await _kill(iris, leader)
                # Acknowledged by the leader that is dead: it is the same job.
                again = await client.submit(waiting(address, "job-0"), "job-0", key="key-0", resources=small)
                assert again.id == jobs[0].id
                (store / "go").touch()
                values = [await client.wait(job, timeout=PATIENCE_S) for job in jobs]
                tries = [task.tries for job in jobs for task in await job.tasks()]
    begun = {path.name for path in store.iterdir()} - {"go"}
    assert begun == {value.replace(" ", ".") for value in values}
    assert [value.partition(" ")[0] for value in values] == [f"job-{n}" for n in range(JOBS)]
    assert tries == [1] * JOBS
    assert took <= TAKE_OVER_S, f"the take-over took {took:.1f} s"


async def _two_controllers(iris: Installation) -> None:
    """The standby has started, too: on another node, and not ready."""
    while True:
        pods = (await iris.kubectl.get("pods", "--selector=app=iris-controller"))["items"]
        started = [
            pod
            for pod in pods
            if any(one.get("started") for one in pod["status"].get("containerStatuses", []))
        ]
        if len(started) == 2:
            assert len({pod["spec"]["nodeName"] for pod in started}) == 2
            return
        await CLOCK.sleep(LOOK_EVERY)


async def _kill(iris: Installation, leader: dict[str, Any]) -> float:
    """kill -9 of the leader; returns how long it took until a client reached another one through the Service."""
    (pid,) = pod_processes(leader["metadata"]["uid"], "iris.cluster.controller.main")
    async with iris.client() as client:
        killed = CLOCK.monotonic()
        os.kill(pid, signal.SIGKILL)
        while True:
            try:
                with anyio.move_on_after(1):
                    await client.jobs(limit=1)
                    return CLOCK.monotonic() - killed
            except Error:
                pass
            await CLOCK.sleep(LOOK_EVERY)
