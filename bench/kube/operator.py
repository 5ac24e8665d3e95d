"""An operator's cold start: every object seen and its status written once; then its answers to changes, then its silence.

Ours, kopf and a bare writer work on the same objects of the same API server, one after the other: the writer shows how much
of the time is the server's own. kopf comes twice: by its leanest handler, which writes no more than ours, and as its guide
teaches it. NEORION_BENCH_OBJECTS sets how many.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from bench.kit import Report
from bench.kube.things import DEFINITION_BODY, NAMESPACE, THING, Thing, thing
from bench.peers import Absent
from bench.peers.environment import HERE, python_of
from bench.process import cluster_cpu_s, cpu_s, peak_mb
from neorion.drydock.cluster import Cluster
from neorion.drydock.clusters import ClusterManager
from neorion.keel.clock import SystemClock, system_rng
from neorion.keel.kube import Added, MergePatch, Modified, ObjectKey, ObjectMeta, Selector, condition
from neorion.keel.kube.client import Client, connect, read_kubeconfig
from neorion.keel.kube.control import InformerFactory, Priority
from neorion.keel.kube.core import DEFINITION, Namespace
from neorion.keel.kube.core import NAMESPACE as NAMESPACE_KIND

OBJECTS = int(os.environ.get("NEORION_BENCH_OBJECTS", "10000"))
# A cold start takes a minute or two: more rounds would not tell more than they cost.
ROUNDS = 2
CHANGES = 500
STEADY_S = 20.0
PATIENCE_S = 1800.0
_WRITES = re.compile(
    rb'^apiserver_request_total\{[^}]*resource="things"[^}]*verb="(?:PATCH|PUT|POST)"[^}]*\} (\S+)$',
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one cold start took until the last status was written: seconds, CPU of the operator and of the cluster, memory."""

    wall_s: float
    cpu_s: float
    cluster_cpu_s: float
    memory_mb: float


@contextmanager
def side(command: list[str], env: dict[str, str], log: str) -> Generator["subprocess.Popen[bytes]"]:
    with Path(f"/tmp/bench-{log}.log").open("w") as out:  # noqa: S108 -- overwritten by the next run
        process = subprocess.Popen(command, env={**os.environ, **env}, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ours(cluster: Cluster, turn: int) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "bench.kube.things", str(cluster.kubeconfig), str(turn)], {}


def writer(cluster: Cluster, turn: int) -> tuple[list[str], dict[str, str]]:
    command, env = ours(cluster, turn)
    return [*command, str(OBJECTS)], env


def kopf(cluster: Cluster, turn: int) -> tuple[list[str], dict[str, str]]:
    return _kopf(cluster, turn, "--quiet", str(HERE / "sides" / "kopf.py"))


def kopf_taught(cluster: Cluster, turn: int) -> tuple[list[str], dict[str, str]]:
    return _kopf(cluster, turn, str(HERE / "sides" / "kopf_taught.py"))


def _kopf(cluster: Cluster, turn: int, *args: str) -> tuple[list[str], dict[str, str]]:
    command = [str(python_of("kopf")), "-m", "kopf", "run", "--standalone", "--namespace", NAMESPACE, *args]
    return command, {"KUBECONFIG": str(cluster.kubeconfig), "BENCH_ROUND": str(turn)}


async def seen_through(api: Client, cluster: Cluster, process: "subprocess.Popen[bytes]", turn: int) -> Cost:
    """Watches from outside until every object has the status of this turn."""
    began, before = time.monotonic(), cluster_cpu_s(cluster)
    informers = InformerFactory(api, SystemClock(), system_rng())
    done, changed = set[ObjectKey](), anyio.Event()

    def count(_before: Thing | None, after: Thing | None, _lane: Priority) -> None:
        if after is not None and after.status.turn == turn:
            done.add(after.meta.key)
            changed.set()

    informers.of(THING, NAMESPACE).listen(count)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(informers.run)
            while len(done) < OBJECTS:
                if process.poll() is not None:
                    raise Absent("an operator ended before its work was done")
                with anyio.move_on_after(1):
                    await changed.wait()
                changed = anyio.Event()
            group.cancel_scope.cancel()
    wall = time.monotonic() - began
    return Cost(wall, cpu_s(process.pid), cluster_cpu_s(cluster) - before, peak_mb(process.pid))


@dataclass(slots=True)
class Answers:
    """Milliseconds from sending a change until it is accepted, and until the operator's answer is seen from outside."""

    accepted: list[float] = field(default_factory=list[float])
    answered: list[float] = field(default_factory=list[float])


async def ask(api: Client, answers: Answers) -> None:
    """One change at a time."""
    informers = InformerFactory(api, SystemClock(), system_rng())
    mirror = informers.of(THING, NAMESPACE)
    changed = anyio.Event()
    mirror.listen(lambda _before, _after, _lane: changed.set())
    async with anyio.create_task_group() as group:
        group.start_soon(informers.run)
        await mirror.wait_synced()
        for number in range(CHANGES):
            name = f"thing-{number * OBJECTS // CHANGES:05d}"
            began = time.monotonic()
            wanted = await api.patch(THING, name, MergePatch({"spec": {"size": -number - 1}}), NAMESPACE)
            answers.accepted.append((time.monotonic() - began) * 1e3)
            while (
                one := mirror.get(wanted.meta.key)
            ) is None or one.status.observed != wanted.meta.generation:
                changed = anyio.Event()
                await changed.wait()
            answers.answered.append((time.monotonic() - began) * 1e3)
        group.cancel_scope.cancel()


async def writes(api: Client) -> float:
    return sum(float(count) for count in _WRITES.findall(await api.read("/metrics")))


async def prepare(api: Client) -> None:
    await api.apply(DEFINITION, DEFINITION_BODY, "bench")
    await established(api)
    await api.apply(NAMESPACE_KIND, Namespace(ObjectMeta(name=NAMESPACE)), "bench")
    limit = anyio.Semaphore(32)

    async def make(number: int) -> None:
        async with limit:
            await api.create(THING, thing(number))

    async with anyio.create_task_group() as group:
        for number in range(OBJECTS):
            group.start_soon(make, number)


async def established(api: Client) -> None:
    async with api.watch(DEFINITION, select=Selector(fields=f"metadata.name={THING.resource}")) as events:
        async for event in events:
            if isinstance(event, Added | Modified):
                found = condition(event.object.status.conditions, "Established")
                if found is not None and found.holds:
                    return


async def measure(report: Report) -> None:
    async with (
        ClusterManager.of().cluster("bench-kube") as cluster,
        connect(read_kubeconfig([cluster.kubeconfig]).cluster(), "bench-people/1") as api,
    ):
        await prepare(api)
        sides = {"ours": ours, "kopf": kopf, "bare writes": writer}
        # Once and last: it leaves finalizers and annotations on every object.
        taught = {"kopf as taught": kopf_taught}
        costs: dict[str, list[Cost]] = {name: [] for name in (*sides, *taught)}
        answers = Answers()
        idle = 0.0
        for turn, (name, of) in enumerate([*[*sides.items()] * ROUNDS, *taught.items()], 1):
            with side(*of(cluster, turn), f"operator-{name.replace(' ', '-')}") as process:
                costs[name].append(await seen_through(api, cluster, process, turn))
                print(f"{name}: {costs[name][-1]}", flush=True)
                if name == "ours":
                    await ask(api, answers)
                    # The server counts a write a moment after it has told of it.
                    await anyio.sleep(1)
                    before = await writes(api)
                    await anyio.sleep(STEADY_S)
                    idle += await writes(api) - before
        _tell(report, costs, answers, idle)


def _tell(report: Report, costs: dict[str, list[Cost]], answers: Answers, idle: float) -> None:
    for what, unit, reference in (
        ("wall_s", "s", "kopf"),
        ("wall_s", "s", "bare writes"),
        ("wall_s", "s", "kopf as taught"),
        ("cpu_s", "CPU-s", "kopf"),
        ("cpu_s", "CPU-s", "kopf as taught"),
        ("cluster_cpu_s", "CPU-s", "kopf"),
        ("cluster_cpu_s", "CPU-s", "bare writes"),
        ("memory_mb", "MB", "kopf"),
    ):
        rounds = len(costs[reference])
        mine, other = (
            iter([getattr(cost, what) for cost in costs[name][-rounds:]]) for name in ("ours", reference)
        )
        report.compare(
            f"cold start, {OBJECTS:,} objects, one status write each, {what}",
            unit,
            lambda values=mine: next(values),
            (reference, lambda values=other: next(values)),
            rounds=rounds,
        )
    for percent in (50, 99):
        report.compare(
            f"change sent → answer seen, p{percent}",
            "ms",
            lambda at=percent: _percentile(answers.answered, at),
            ("the change alone", lambda at=percent: _percentile(answers.accepted, at)),
            rounds=1,
        )
    report.alone(f"writes in {STEADY_S * ROUNDS:.0f} s of steady state", "writes", lambda: idle, rounds=1)


def _percentile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def run(report: Report) -> None:
    try:
        anyio.run(measure, report)
    except Absent as absent:
        print(f"not measured: {absent}")
