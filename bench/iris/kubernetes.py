"""One job on a worker Pod that is there already, submit to value, beside the same job on a worker of this machine."""

import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from bench.kit import Report
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.drydock.testing import namespace, shared_cluster
from neorion.iris.client import IrisClient
from tests.node.iris_installation import cluster_file, group, installed, push_images
from tests.node.pods import Kubectl

# One job after the other, of which the median counts.
JOBS = 15
ROUNDS = 5


def run(report: Report) -> None:
    with (
        shared_cluster("bench-iris", ClusterManager.of(), ClusterOptions(nodes=1)) as cluster,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(_installed(cluster)) as (url, token),
        IrisClient.remote(url, token=token) as inside,
        IrisClient.local(workers=1) as here,
    ):
        in_pod, on_machine = _job(inside), _job(here)
        # The worker Pod starts, and both load the client's modules.
        in_pod()
        on_machine()
        report.compare(
            "one job on a warm worker Pod, submit to value",
            "ms",
            lambda: _median(in_pod),
            ("the same on this machine", lambda: _median(on_machine)),
            rounds=ROUNDS,
        )


@asynccontextmanager
async def _installed(cluster: Cluster) -> AsyncGenerator[tuple[str, str]]:
    await push_images(cluster)
    with tempfile.TemporaryDirectory() as folder:
        async with namespace(cluster) as name:
            kubectl = Kubectl(cluster, name)
            one = {**group(), "min_slices": 1, "max_slices": 1}
            file = cluster_file(name, scale_groups={"nodes": one})
            async with installed(kubectl, Path(folder), file) as iris:
                yield await iris.endpoint()


def _job(client: IrisClient) -> Callable[[], float]:
    numbers = count()
    prefix = time.time_ns()

    def timed() -> float:
        began = time.perf_counter()
        assert client.wait(client.submit(lambda: 42, f"bench-{prefix}-{next(numbers)}"), timeout=300) == 42
        return 1000 * (time.perf_counter() - began)

    return timed


def _median(job: Callable[[], float]) -> float:
    return sorted(job() for _ in range(JOBS))[JOBS // 2]
