"""A controller with many workers that have nothing to do: what their heartbeats cost it, and what silence costs."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc

from bench.kit import Report
from bench.process import cpu_s
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import WorkerServiceClient
from neorion.keel.clock import SystemIds
from neorion.keel.rpc import Channel, connect

WORKERS = 1000
SPAN_S = 10.0
# Its one scale group never gets a slice: the workers come by themselves.
CLUSTER = """
platform: { local: {} }
controller: { local: {} }
scale_groups:
  none:
    accelerator_type: cpu
    accelerator_variant: cpu
    num_vms: 1
    resources: { cpu: 4, ram: 8GB, disk: 10GB, gpu_count: 0 }
    min_slices: 0
    max_slices: 1
    slice_template: { accelerator_type: cpu, accelerator_variant: cpu, num_vms: 1, local: { faults: { quota: 0 } } }
"""


@dataclass(frozen=True, slots=True)
class Controller:
    """A process of its own."""

    pid: int
    address: str
    folder: Path

    def written_bytes(self) -> int:
        lines = Path(f"/proc/{self.pid}/io").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


@contextmanager
def controller() -> Generator[Controller]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text(CLUSTER)
        command = [sys.executable, "-m", "neorion.iris", "local", "--folder", name, "--port", "0"]
        command += ["--config", str(folder / "cluster.yaml")]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            try:
                yield Controller(process.pid, process.stdout.readline().strip(), folder)
            finally:
                process.terminate()


@dataclass(slots=True)
class Fleet:
    """Workers that join, listen for orders and send heartbeats. A worker whose lease is lost raises an error."""

    address: str
    join: Channel
    # How long each heartbeat took.
    took: list[float] = field(default_factory=list[float])

    @property
    def beats(self) -> int:
        return len(self.took)

    async def live(self, number: int, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        total = pb.Resources(cpu_milli=1000)
        request = pb.JoinRequest(slice=f"slice-{number}", host=f"host-{number}", total=total)
        joined = await self.join.client(WorkerServiceClient).join(request)
        # Each with its own token, and so with connections of its own.
        async with (
            connect(self.address, ids=SystemIds(), token=self.join.pinned(joined.token)) as channel,
            anyio.create_task_group() as group,
        ):
            calls = channel.client(WorkerServiceClient)
            group.start_soon(self._listen, calls, joined.worker)
            task_status.started()
            while True:
                await anyio.sleep(joined.renew_every_ms / 1000)
                sent = time.monotonic()
                await calls.report(pb.ReportRequest(worker=joined.worker))
                self.took.append(time.monotonic() - sent)

    async def _listen(self, calls: WorkerServiceClient, worker: str) -> None:
        async for _ in calls.orders(pb.OrdersRequest(worker=worker), timeout_ms=10**7):
            pass


def run(report: Report) -> None:
    with controller() as idle:
        anyio.run(anyio.sleep, 3)
        share = 100 * anyio.run(_cpu_of, idle)
        report.alone("idle, without workers", "% of a core", lambda: share, rounds=1)
    for count in (WORKERS // 10, WORKERS):
        with controller() as busy:
            cost, beats, written = anyio.run(_heartbeats, busy, count)
        title = f"{count:,} idle workers"
        report.alone(f"{title}: heartbeats", "per second", lambda beats=beats: beats / SPAN_S, rounds=1)
        report.alone(
            f"{title}: the controller", "% of a core", lambda cost=cost: 100 * cost / SPAN_S, rounds=1
        )
        report.alone(
            f"{title}: a heartbeat", "µs of CPU", lambda cost=cost, beats=beats: 1e6 * cost / beats, rounds=1
        )
        report.alone(f"{title}: written to disk", "bytes", lambda written=written: written, rounds=1)


async def _cpu_of(one: Controller) -> float:
    before = cpu_s(one.pid)
    await anyio.sleep(SPAN_S)
    return (cpu_s(one.pid) - before) / SPAN_S


async def _heartbeats(one: Controller, count: int) -> list[float]:
    """CPU seconds, heartbeats and bytes written within the span."""
    token = (one.folder / "worker.token").read_text()
    found: list[float] = []
    async with connect(one.address, ids=SystemIds(), token=token) as channel:
        fleet = Fleet(one.address, channel)

        def figures() -> tuple[float, int, int]:
            return cpu_s(one.pid), fleet.beats, one.written_bytes()

        async with anyio.create_task_group() as group:
            for number in range(count):
                await group.start(fleet.live, number)
            await anyio.sleep(3)
            before = figures()
            await anyio.sleep(SPAN_S)
            found += [after - start for start, after in zip(before, figures(), strict=True)]
            group.cancel_scope.cancel()
    return found
