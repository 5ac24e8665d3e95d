"""A machine that is taken away takes everything with it: what it had runs elsewhere, and nowhere else."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from neorion.iris.adapters.cluster_file import ClusterFile
from neorion.iris.adapters.platforms.local.pidfd import ticks_of
from neorion.iris.app.cluster import cluster
from neorion.iris.client import AsyncIrisClient
from neorion.iris.model import SliceId
from neorion.keel.config import loads
from tests.iris.processes import processes_in

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]

# A worker may be silent for longer than the test lasts: no lease ends anything here.
_FILE = """
platform: { local: {} }
controller: { local: {}, worker_timeout: 10m }
defaults:
  autoscaler: { evaluation_interval: 200ms, scale_up_delay: 0, scale_down_delay: 10m, startup_grace_period: 10m }
scale_groups:
  cpu:
    accelerator_type: cpu
    resources: { cpu: 2, ram: 4GB }
    max_slices: 2
    slice_template: { local: {} }
"""


def _alone(mark: str) -> list[bool]:
    """Of the second attempt: which processes of the first one are still there."""
    path = Path(mark)
    if os.environ["IRIS_ATTEMPT_NUMBER"] == "1":
        child = os.fork()
        if child == 0:
            os.setsid()
            signal.pause()
        path.write_text(f"{os.getpid()} {child}")
        print("both are there", flush=True)  # noqa: T201 -- the test waits for it
        signal.pause()
    return [ticks_of(int(pid)) is not None for pid in path.read_text().split()]


async def test_nothing_of_a_machine_outlives_its_power(tmp_path: Path):
    mark = tmp_path / "mark"
    with anyio.fail_after(120):
        async with (
            cluster(loads(_FILE, ClusterFile, {}), tmp_path / "iris", ("127.0.0.1", 0)) as running,
            AsyncIrisClient.remote(running.address, token=running.token) as client,
        ):
            try:
                job = await client.submit(_alone, "alone", args=(str(mark),))
                await anext(client.follow(job))
                (first,) = await client.slices()
                await running.lose(SliceId(first.id))
                assert await client.wait(job) == [False, False]
            finally:
                await running.platform.shutdown()
            assert processes_in(tmp_path / "iris") == []
