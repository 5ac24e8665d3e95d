"""The promises of a runtime, kept by Pods on real nodes; and what only Pods can meet."""

import os
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from neorion.drydock.cluster import Cluster
from neorion.iris.adapters.runtimes.container.runner_server import RunnerAddress
from neorion.iris.adapters.runtimes.container.runtime import ContainerRuntime
from neorion.iris.adapters.runtimes.kubernetes import PodEngine, PodSettings
from neorion.iris.adapters.runtimes.process.result_file import load
from neorion.iris.ports import ExitKind, Phase, Runtime
from neorion.iris.testing.runtime_waits import ended
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube.client import connect, find_cluster
from tests.contracts.runtime import IN_PROCESSES, LONG, Rig, RuntimeContract
from tests.node.pods import MINUTES, NEEDS, Kubectl

pytestmark = [pytest.mark.anyio, NEEDS, MINUTES]

ROOT = Path(__file__).parents[2]
# The Python of this test with its libraries, in place of an image that takes minutes to build.
_PLACES = {
    "/usr": "/usr",
    "/lib": "/usr/lib",
    "/lib64": "/usr/lib64",
    str(ROOT): str(ROOT),
    sys.base_prefix: sys.base_prefix,
}


def settings(namespace: str, **more: Any) -> PodSettings:
    places = list(enumerate(_PLACES.items()))
    return PodSettings(
        namespace=namespace,
        worker=namespace,
        image="busybox",
        python=sys.executable,
        volumes=tuple({"name": f"host-{i}", "hostPath": {"path": there}} for i, (_, there) in places),
        mounts=tuple({"name": f"host-{i}", "mountPath": here, "readOnly": True} for i, (here, _) in places),
        **more,
    )


@asynccontextmanager
async def opened(cluster: Cluster, root: Path, pods: PodSettings) -> AsyncGenerator[Runtime]:
    clock, rng = SystemClock(), system_rng()
    host = str(cluster.layout.addresses.host)
    async with (
        connect(find_cluster(cluster.kubeconfig), "iris", clock, rng) as api,
        ContainerRuntime(
            root, PodEngine(pods, api, clock, rng), RunnerAddress(host, host), clock, rng
        ) as runtime,
    ):
        yield runtime


@pytest.fixture
def rig(node_cluster: Cluster, kubectl: Kubectl, tmp_path: Path) -> Rig:
    return Rig(
        lambda: opened(node_cluster, tmp_path / "runtime", settings(kubectl.namespace)),
        IN_PROCESSES,
        tmp_path,
    )


class TestPods(RuntimeContract):
    """On a cluster with real kubelets."""


GANGS = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "iris-gangs"},
    "spec": {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"iris-gang-member": "true"},
    },
}


def meeting() -> Callable[[], list[int]]:
    """A function of the test's own, which is pickled by value."""

    def meet() -> list[int]:
        """A sum over all ranks without a library: the leader listens at its name, the others connect to it."""
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if rank == 0:
            with socket.create_server(place) as server:
                server.settimeout(60)
                peers = [server.accept()[0] for _ in range(world - 1)]
                total = sum(int(peer.recv(16)) for peer in peers)
                for peer in peers:
                    peer.sendall(b"%d" % total)
                    peer.close()
                return [rank, total]
        while True:
            try:
                with socket.create_connection(place, timeout=60) as line:
                    line.sendall(b"%d" % rank)
                    return [rank, int(line.recv(16))]
            except ConnectionRefusedError:
                threading.Event().wait(0.05)

    return meet


async def test_a_gang_meets_at_the_name_of_its_leader(rig: Rig, kubectl: Kubectl):
    """Also when the leader comes last: the others wait until its name is known."""
    await kubectl.apply(GANGS)
    members = [rig.call(meeting()) for _ in range(3)]
    leader, *others = [
        replace(
            one,
            variables=(
                ("IRIS_GANG_ID", str(members[0].attempt)),
                ("RANK", str(rank)),
                ("WORLD_SIZE", "3"),
                ("MASTER_ADDR", "address-of-a-worker"),
                ("MASTER_PORT", "23456"),
            ),
        )
        for rank, one in enumerate(members)
    ]
    async with rig.life() as runtime:
        await runtime.renew(LONG)
        for one in others:
            await runtime.start(one)
        await kubectl(
            "wait", "pod", "--for=jsonpath={.status.phase}=Running", "-l", "iris-gang", "--timeout=60s"
        )
        assert [seen.phase for seen in await runtime.seen()] == [Phase.BUILDING, Phase.BUILDING]
        await runtime.start(leader)
        ends = [await ended(runtime, one.attempt) for one in (leader, *others)]
        assert [load(end.result) for end in ends if end.result] == [[0, 3], [1, 3], [2, 3]]


OTHER_PYTHON = "import platform; platform.python_version_tuple = lambda: ('3', '99', '0')\n"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image": "Not an image"}, "cannot start (InvalidImageName)"),
        ({"python": "/bin/false"}, "Its image does not run the task (exit code 1)"),
        ({"python": "/no/python"}, "Its image does not start"),
    ],
)
async def test_an_image_that_cannot_run_tasks_fails_the_attempt_with_the_reason(
    node_cluster: Cluster, kubectl: Kubectl, rig: Rig, change: dict[str, str], words: str
):
    pods = structs.replace(settings(kubectl.namespace), **change)
    order = rig.call(lambda: 1)
    async with opened(node_cluster, rig.root / "other", pods) as runtime:
        await runtime.renew(LONG)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, words in end.message) == (ExitKind.NOT_STARTED, True), end.message


async def test_an_image_with_another_python_is_told_before_the_task_begins(
    node_cluster: Cluster, kubectl: Kubectl, rig: Rig
):
    """The Python of this machine says that it is another one: functions are pickled by version."""
    other = rig.root / "python"
    other.write_text(
        f"#!{sys.executable}\n{OTHER_PYTHON}import runpy, sys\nsys.argv[:] = sys.argv[2:]\nrunpy.run_module(sys.argv[1], run_name='__main__')\n"
    )
    other.chmod(0o755)
    usual = settings(kubectl.namespace)
    place = {"name": "other", "hostPath": {"path": str(rig.root)}}
    mount = {"name": "other", "mountPath": "/other"}
    pods = structs.replace(
        usual, python="/other/python", volumes=(*usual.volumes, place), mounts=(*usual.mounts, mount)
    )
    order = rig.call(lambda: 1)
    async with opened(node_cluster, rig.root / "runtime", pods) as runtime:
        await runtime.renew(LONG)
        await runtime.start(order)
        end = await ended(runtime, order.attempt)
        assert (end.kind, "has Python 3.99" in end.message) == (ExitKind.NOT_STARTED, True), end.message
