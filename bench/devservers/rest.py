"""Many servers at rest: how an operator that starts anew finds them as they should be, and what it costs to keep them so.

The servers and all their objects are put straight into etcd, as the operator would have made them, because making 10,000
of them takes an API server on this machine longer than anybody waits. NEORION_BENCH_SERVERS says how many.
"""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import anyio

from bench.devservers.furniture import Manifest, furnished, ours_at_rest, put, reference_at_rest
from bench.devservers.operator import DELETED, STEADY_S, Eye, Figures, Run, answer, prepare, service, tell
from bench.devservers.sides import built, ours, reference, side, together
from bench.kit import Report
from bench.process import cpu_s, peak_mb
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager, ClusterOptions
from neorion.keel.kube.client import connect, read_kubeconfig
from neorion.keel.kube.core import SERVICE

SIZES = [int(size) for size in os.environ.get("NEORION_BENCH_SERVERS", "1000,10000").split(",")]

Furnish = Callable[[Iterator[Manifest]], Iterator[Manifest]]


async def one_run(name: str, command: Callable[[Cluster], list[str]], furnish: Furnish, size: int) -> Run:
    run = Run()
    async with (
        ClusterManager.of().cluster("bench-devservers-rest", ClusterOptions()) as cluster,
        connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "bench-people/1") as api,
        anyio.create_task_group() as group,
    ):
        await prepare(cluster, api)
        for part in ("kube-controller-manager", "kube-scheduler"):
            await cluster.stop(part)
        born = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        await put(cluster, furnish(await furnished(api, size, born)))
        eye = Eye(api)
        group.start_soon(eye.informers.run)
        await eye.informers.wait_synced()
        await eye.until(lambda: len(eye.done) == size)
        await _start(eye, command(cluster), name, size, run)
        group.cancel_scope.cancel()
    print(f"{name} {size:,}: {run}", flush=True)
    return run


async def _start(eye: Eye, command: list[str], name: str, size: int, run: Run) -> None:
    """Some Services, spread over all servers, are missing when it starts: all back means all servers seen."""
    keys = [service(together(number * size // DELETED)) for number in range(DELETED)]
    for key in keys:
        await eye.api.delete(SERVICE, key.name, key.namespace)
    await eye.until(lambda: not any(eye.services.get(key) for key in keys))
    before = await eye.writes()
    began = time.monotonic()
    with side(f"{name}-rest", command) as process:
        await eye.until(lambda: all(eye.services.get(key) for key in keys), process)
        run.restart_s = time.monotonic() - began
        run.restart_cpu_s, run.restart_memory_mb = cpu_s(process.pid), peak_mb(process.pid)
        run.writes = await eye.writes() - before
        await anyio.sleep(STEADY_S / 2)
        before = await eye.writes()
        await anyio.sleep(STEADY_S)
        run.idle_writes = await eye.writes() - before
        await answer(eye, process, size, run, together)


async def measure(report: Report) -> None:
    program = await built()
    for size in SIZES:
        runs = {
            "ours": [await one_run("ours", ours, ours_at_rest, size)],
            "reference": [
                await one_run(
                    "reference",
                    lambda cluster: reference(cluster, program),
                    lambda given: reference_at_rest(given, program),
                    size,
                )
            ],
        }
        figures: Figures = {
            "start → all servers seen": ("s", lambda run: run.restart_s),
            "CPU of the start": ("CPU-s", lambda run: run.restart_cpu_s),
            "memory after the start": ("MB", lambda run: run.restart_memory_mb),
            f"writes of the start, {DELETED} needed": ("writes", lambda run: run.writes),
        }
        tell(report, size, runs, figures)


def run(report: Report) -> None:
    anyio.run(measure, report)
