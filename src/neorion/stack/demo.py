"""The demo: starts a cluster, submits a job, cuts the power of one machine and waits for all results."""

import math
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from neorion.iris.app.cluster import ClusterFile, RunningCluster, cluster
from neorion.iris.client import AsyncIrisClient
from neorion.keel.cli.kit import Output
from neorion.keel.clock import SystemClock
from neorion.keel.config import loads
from neorion.keel.telemetry.setup import LogFormat, setup
from neorion.stack.narrator import DemoNarrator

SHARDS = 32
_FILE = """
platform: { local: {} }
controller: { local: {} }
defaults:
  autoscaler: { evaluation_interval: 200ms, scale_up_delay: 0, scale_down_delay: 1s, startup_grace_period: 1s }
scale_groups:
  h100_8x:
    accelerator_type: gpu
    accelerator_variant: H100
    num_vms: 1
    resources: { cpu: 16, ram: 64GB, gpu_count: 8 }
    min_slices: 0
    max_slices: 3
    slice_template:
      accelerator_type: gpu
      accelerator_variant: H100
      num_vms: 1
      local: { boot_delay: 500ms }
"""


def shard_loss(shard: int) -> float:
    """Simulates a step of training: computes for a moment and returns a number."""
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until:
        pass
    return math.sin(shard) ** 2


def run_demo(out: Output) -> None:
    setup(LogFormat.PEOPLE, level="error")
    anyio.run(_play, out)


async def _play(out: Output) -> None:
    out.text(
        "A GPU cluster on this machine: the processes are real, the GPUs are simulated. Nothing is left behind at the end.\n"
        f"The job is one Python function over {SHARDS} shards. Each needs 8 H100s, which is a whole machine.\n\n"
    )
    async with _running() as running, AsyncIrisClient.remote(running.address, token=running.token) as client:
        story = DemoNarrator(out, client, SystemClock(), running.lose)
        story.print_line(f"the controller listens at {running.address}; it has no machines yet")
        job = await client.start_map(
            shard_loss, list(range(SHARDS)), "demo", chunk=1, resources={"gpu": "H100:8", "memory": "1Gi"}
        )
        story.print_line(f"submitted {job.name}; it waits for machines", "submitted")
        await story.follow(job, SHARDS)
        values: list[list[float]] = await client.wait(job)
        loss = sum(value for (value,) in values) / SHARDS
        story.print_line(f"every shard's value is here: the mean loss is {loss:.4f}", "results")
        await story.wait_for_idle()
        out.text(story.summary(len(values), await client.tasks(job.id)))


@asynccontextmanager
async def _running() -> AsyncGenerator[RunningCluster]:
    with tempfile.TemporaryDirectory(prefix="neorion-demo-", ignore_cleanup_errors=True) as folder:
        async with cluster(loads(_FILE, ClusterFile, {}), Path(folder), ("127.0.0.1", 0)) as running:
            try:
                yield running
            finally:
                with anyio.CancelScope(shield=True):
                    await running.platform.shutdown()
