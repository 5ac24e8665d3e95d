"""What many servers that are as they should be cost an operator: the memory of its mirrors, and one look at each.

Objects come as the API server would send them, and are decoded as they are there; nothing is sent anywhere.
NEORION_BENCH_SERVERS says how many servers.
"""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import msgspec

from bench.kit import Report
from neorion.devservers.controllers import ClusterCache, DevServerController, Writers
from neorion.devservers.decide import Observed, decide
from neorion.devservers.model.kube_types import DEVSERVERS, DevServerObject
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.base import Conflict
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Kind, ObjectKey
from neorion.keel.kube.control import Applier, EventRecorder, Informer, InformerFactory
from neorion.keel.kube.control.apply_hash import DesiredManifest
from neorion.keel.kube.core import POD
from neorion.keel.kube.testing import MemoryApi, MemoryCluster

SIZE = int(os.environ.get("NEORION_BENCH_SERVERS", "10000"))
NOW = CREATED + timedelta(minutes=5)


class NoWrites:
    """A fence that nobody may pass: whoever writes here has found something to do."""

    def check(self) -> None:
        raise Conflict("bench.wrote", "There was something to do.")


def resident_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def texts(name: str, number: int) -> list[tuple[Kind[Any] | str, bytes]]:
    """A server that runs and everything of it, as JSON."""
    meta = {"name": name, "namespace": "bench", "uid": f"uid-{number}", "generation": 1}
    ids = {"resourceVersion": str(number + 1), "creationTimestamp": CREATED.isoformat()}
    finalizers = {"finalizers": ["devservers.io/home"]}
    whole = {**msgspec.to_builtins(a_server()), "metadata": {**meta, **ids, **finalizers}}
    pod = msgspec.to_builtins(a_pod())
    pod["metadata"] |= {"name": f"{name}-x", "namespace": "bench", "labels": {"devservers.io/server": name}}
    seen = Observed(
        msgspec.convert(whole, DevServerObject), a_flavor(), a_claim(), pods=(msgspec.convert(pod, POD.type),)
    )
    for _ in range(2):
        decision = decide(seen, SETTINGS, NOW)
        whole["status"] = msgspec.to_builtins(decision.status)
        seen = Observed(msgspec.convert(whole, DevServerObject), a_flavor(), a_claim(), pods=seen.pods)
    made: list[tuple[Kind[Any] | str, Any]] = [(DEVSERVERS, whole), (POD, pod)]
    for manifest in decide(seen, SETTINGS, NOW).objects:
        body = DesiredManifest.of(manifest).with_annotation(None)
        body["metadata"] |= ids | ({"generation": 1} if manifest["kind"] == "Deployment" else {})
        body["status"] = {"phase": "Bound"}
        made.append((manifest["kind"], body))
    return [(kind, msgspec.json.encode(body)) for kind, body in made]


async def look() -> tuple[float, float]:
    """Megabytes of the mirrors, and seconds of one look at every server."""
    clock, rng = SystemClock(), system_rng()
    api = MemoryApi(MemoryCluster(clock), clock)
    informers = InformerFactory(api, clock, rng)
    mirrors = ClusterCache(informers)
    by_kind: dict[Kind[Any] | str, Informer[Any]] = {
        DEVSERVERS: mirrors.servers,
        POD: mirrors.pods,
        "PersistentVolumeClaim": mirrors.claims,
        "Deployment": mirrors.deployments,
        "Service": mirrors.services,
        "ConfigMap": mirrors.scripts,
    }
    written = [texts(f"dev-{number:05d}", number) for number in range(SIZE)]
    before = resident_mb()
    heard = {informer: informer.new_store() for informer in by_kind.values()}
    for all_of_one in written:
        for kind, text in all_of_one:
            informer = by_kind[kind]
            thing = msgspec.json.decode(text, type=informer.kind.type)
            heard[informer][thing.meta.key] = thing
    for informer, things in heard.items():
        informer.replace_all(things, SIZE + 1)
    mirrors.flavors.replace_all({ObjectKey("", "cpu-small"): a_flavor()}, 1)
    memory = resident_mb() - before
    applier = Applier(api, "bench", informers, NoWrites())
    hands = Writers(api, applier, EventRecorder(api, "bench", "bench", clock), NoWrites())
    servers = DevServerController(mirrors, hands, SETTINGS, clock)
    keys = [server.meta.key for server in mirrors.servers]
    began = time.process_time()
    for key in keys:
        await servers.reconcile(key)
    return memory, time.process_time() - began


def run(report: Report) -> None:
    memory, seconds = anyio.run(look)
    report.alone(f"mirrors of {SIZE:,} servers", "MB", lambda: memory, rounds=1)
    report.alone(f"one look at each of {SIZE:,} servers", "CPU-s", lambda: seconds, rounds=1)
