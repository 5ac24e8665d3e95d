"""The Kubernetes client beside the official one: decoding a pod, keeping many, writing to a real API server."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import uvloop

from bench.kit import Report
from bench.peers import Absent, Peer
from neorion.drydock.clusters import ClusterManager
from neorion.keel.kube import MergePatch, ObjectMeta
from neorion.keel.kube.client import Client, connect, find_cluster
from neorion.keel.kube.client.decoding import decode
from neorion.keel.kube.core import CONFIG_MAP, POD, ConfigMap, Pod

SAMPLE = (Path(__file__).parent / "pod.json").read_bytes()
PEER = "kube-official"
CLUSTER = "bench-client"
# Ours and the peer's counts differ so that a round of each takes about as long.
DECODED, DECODED_BY_PEER = 5_000, 300
KEPT, KEPT_BY_PEER = 10_000, 1_000
PATCHES = 600
IN_FLIGHT = 32


def pod(number: int) -> Pod:
    body = SAMPLE.replace(b"POD_NAME", b"pod-%d" % number).replace(b"UID", b"uid-%d" % number)
    return decode(POD, body)


def decode_us() -> float:
    began = time.perf_counter()
    for number in range(DECODED):
        pod(number)
    return (time.perf_counter() - began) / DECODED * 1e6


def resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def keep_kb() -> float:
    pod(0)
    gc.collect()
    before = resident()
    kept = [pod(number) for number in range(KEPT)]
    gc.collect()
    return (resident() - before) / len(kept) / 1e3


def in_a_process_of_its_own() -> float:
    """Memory once used by a process is not given back: each round starts a fresh one."""
    code = "from bench.kube.client import keep_kb; print(keep_kb())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


async def patch(kubeconfig: Path, clock: Callable[[], float]) -> float:
    async with connect(find_cluster(kubeconfig), "bench/1") as client:
        await _patch_all(client, IN_FLIGHT)
        began = clock()
        await _patch_all(client, PATCHES)
        return clock() - began


async def _patch_all(client: Client, count: int) -> None:
    left = iter(range(count))

    async def work() -> None:
        for number in left:
            name = f"bench-{number % IN_FLIGHT}"
            await client.patch(CONFIG_MAP, name, MergePatch({"data": {"number": str(number)}}), "default")

    async with anyio.create_task_group() as group:
        for _ in range(IN_FLIGHT):
            group.start_soon(work)


async def prepare(kubeconfig: Path) -> None:
    async with connect(find_cluster(kubeconfig)) as client:
        for number in range(IN_FLIGHT):
            await client.create(
                CONFIG_MAP, ConfigMap(ObjectMeta(name=f"bench-{number}", namespace="default"))
            )


def run(report: Report) -> None:
    yard = ClusterManager.of()
    try:
        cluster = anyio.run(yard.up, CLUSTER)
        os.environ["BENCH_KUBECONFIG"] = str(cluster.kubeconfig)
        anyio.run(prepare, cluster.kubeconfig)
        with Peer(PEER) as peer:
            compare(report, peer, cluster.kubeconfig)
    except Absent as absent:
        print(f"without a peer: {absent}")
        report.alone("decode one pod", "µs", decode_us)
        report.alone("keep one pod", "kB", in_a_process_of_its_own)
    finally:
        anyio.run(yard.down, CLUSTER)


def compare(report: Report, peer: Peer, kubeconfig: Path) -> None:
    def theirs(work: str, count: int) -> tuple[str, Callable[[], float]]:
        return "kubernetes 37", lambda: peer.seconds(work, count)

    def rate() -> float:
        return PATCHES / uvloop.run(patch(kubeconfig, time.perf_counter))

    def cpu() -> float:
        return uvloop.run(patch(kubeconfig, time.process_time)) / PATCHES * 1e6

    report.compare("decode one pod", "µs", decode_us, theirs("decode", DECODED_BY_PEER))
    report.compare("keep one pod", "kB", in_a_process_of_its_own, theirs("keep", KEPT_BY_PEER))
    report.compare(f"patches, {IN_FLIGHT} in flight", "/s", rate, theirs("rate", PATCHES))
    report.compare("CPU of the client for one patch", "µs", cpu, theirs("cpu", PATCHES))
