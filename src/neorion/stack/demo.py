"""A cluster out of nothing, work for it, a machine lost on the way, and all results in the end."""

import math
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from neorion.iris.app.cluster import Cluster, ClusterFile, cluster
from neorion.iris.client import AsyncIrisClient, AsyncJob
from neorion.iris.model import SliceId
from neorion.keel.base import Duration
from neorion.keel.cli.kit import Output
from neorion.keel.clock import Clock, SystemClock
from neorion.keel.config import loads
from neorion.keel.telemetry.setup import Form, setup

SHARDS = 24
_LOOK_EVERY = Duration.of(ms=50)
_WORDS = {"READY": "is ready", "FAILED": "has lost its machine", "DELETING": "is given back"}
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
    """Stands for a piece of training: busy for a moment, then a number."""
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until:
        pass
    return math.sin(shard) ** 2


def run_demo(out: Output) -> None:
    setup(Form.PEOPLE, level="error")
    anyio.run(_play, out)


async def _play(out: Output) -> None:
    out.text("A GPU cluster on this machine: the processes are real, the GPUs are pretended.\n\n")
    async with _running() as running, AsyncIrisClient.remote(running.address, token=running.token) as client:
        story = _Story(out, client, SystemClock())
        story.tell(f"controller at {running.address}; no machines yet")
        job = await client.start_map(
            shard_loss, list(range(SHARDS)), "demo", chunk=1, resources={"gpu": "H100:8", "memory": "1Gi"}
        )
        story.tell(f"submitted {job.name}: {SHARDS} shards, each wants 8 H100")
        await story.follow(job, running)
        values: list[list[float]] = await client.wait(job)
        story.tell(f"every shard's value is here; the mean loss is {sum(v for (v,) in values) / SHARDS:.4f}")
        await story.wait_for_idle()
        tasks = await client.tasks(job.id)
    again = sum(task.losses for task in tasks)
    out.text(
        f"\n{len(values)} results from {sum(task.tries for task in tasks)} attempts: {again} of them lost with a machine,"
        " run again elsewhere, and charged to nobody.\n"
    )


@asynccontextmanager
async def _running() -> AsyncGenerator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="neorion-demo-", ignore_cleanup_errors=True) as folder:
        async with cluster(loads(_FILE, ClusterFile, {}), Path(folder), ("127.0.0.1", 0)) as running:
            try:
                yield running
            finally:
                with anyio.CancelScope(shield=True):
                    await running.platform.shutdown()


class _Story:
    """Tells each thing once, with the time since the beginning."""

    def __init__(self, out: Output, client: AsyncIrisClient, clock: Clock) -> None:
        self._out = out
        self._client = client
        self._clock = clock
        self._began = clock.monotonic()
        self._slices: dict[str, str] = {}
        self._told = 0
        self._reason = ""
        self._lost = ""

    def tell(self, text: str) -> None:
        self._out.text(f"{self._clock.monotonic() - self._began:5.1f}s  {text}\n")

    async def follow(self, job: AsyncJob, running: Cluster) -> None:
        """Until the job has ended; a third of the way a machine is taken away."""
        while True:
            status = await job.status()
            await self._look_at_slices()
            done = status.tasks.get("succeeded", 0)
            reason = status.reason.sentence if status.reason else ""
            if reason != self._reason and not done:
                self._reason = reason
                self.tell(f"it waits: {reason}")
            if done >= self._told + SHARDS // 4:
                self._told = done
                self.tell(f"{done} of {SHARDS} shards are done, {status.tasks.get('running', 0)} run")
            if not self._lost and done >= SHARDS // 3:
                self._lost = next(name for name, state in self._slices.items() if state == "READY")
                self.tell(f"the power of slice {_short(self._lost)} is cut")
                await running.platform.lose(SliceId(self._lost))
            if status.ended_ms:
                return
            await self._clock.sleep(_LOOK_EVERY)

    async def wait_for_idle(self) -> None:
        while self._slices:
            await self._look_at_slices()
            await self._clock.sleep(_LOOK_EVERY)
        self.tell("there is nothing more to do, and nothing runs any more")

    async def _look_at_slices(self) -> None:
        now = {piece.id: piece.state for piece in await self._client.slices()}
        for name, state in now.items():
            if self._slices.get(name) != state and state in _WORDS:
                self.tell(f"slice {_short(name)} {_WORDS[state]}")
        self._slices = now


def _short(name: str) -> str:
    return name[-4:]
