"""The command `devctl monitor`: usage of servers, at intervals."""

import csv
from collections.abc import Sequence

import anyio
from msgspec import Struct, field
from msgspec.structs import replace

from neorion.devservers.cli.humanize import TONES, until
from neorion.devservers.cli.options import (
    ClusterSelector,
)
from neorion.devservers.cli.session import parse_timeout, run_with_api
from neorion.devservers.cli.tables import ServerRecord
from neorion.devservers.client import DevServerApi, exec_run
from neorion.devservers.decide import SERVER_LABEL
from neorion.devservers.model import Phase, Rank
from neorion.devservers.model.kube_types import DevServerObject
from neorion.keel.base import Denied, Duration, Error, Instant, Invalid, NotFound, Quantity, Retry
from neorion.keel.cli import Format
from neorion.keel.cli.kit import Column, Output, Table
from neorion.keel.cli.kit.humanize import ago
from neorion.keel.cli.kit.table import table_lines
from neorion.keel.cli.kit.terminal import is_live
from neorion.keel.kube import Kind, KubeObject, KubeStruct, Selector

# A server whose GPUs do not answer within this long is shown without them.
_GPU_PATIENCE_S = 3.0
_ASK_GPUS = (
    "nvidia-smi",
    "--query-gpu=utilization.gpu,memory.used,memory.total",
    "--format=csv,noheader,nounits",
)


# A look asks the API server and every server with a GPU.
_PAUSE_MIN = Duration.of(seconds=1)


class ContainerUsage(KubeStruct, frozen=True):
    """Recent usage of one container."""

    name: str = ""
    usage: dict[str, str] = field(default_factory=dict)


class PodMetrics(KubeObject, frozen=True):
    """Recent usage of a pod, where the cluster has a metrics server."""

    containers: tuple[ContainerUsage, ...] = ()


_METRICS = Kind(PodMetrics, "PodMetrics", "pods", "metrics.k8s.io", "v1beta1")


class UsageRecord(Struct, frozen=True):
    """One server, or one rank of a distributed server, at one moment. What is not measured is empty."""

    server: ServerRecord
    pod: str
    rank: int | None
    status: str
    node: str
    cpu: str
    memory: str
    gpus: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.server.name if self.rank is None else f"{self.server.name} [{self.rank}]"


def readings_table(now: Instant) -> Table[UsageRecord]:
    return Table(
        (
            Column("NAME", lambda one: one.name),
            Column("STATUS", lambda one: one.status, tone=lambda one: TONES.get(one.status)),
            Column("NODE", lambda one: one.node, wide=True),
            Column("CPU", lambda one: one.cpu, right=True),
            Column("MEMORY", lambda one: one.memory, right=True),
            Column("GPU", lambda one: one.gpus, priority=1),
            Column("STOPS", lambda one: until(now, one.server.stops), priority=2),
            Column("LAST USED", lambda one: ago(now, one.server.last_used), priority=3),
            Column("FLAVOR", lambda one: one.server.flavor, priority=4),
            Column("IN THE WAY", lambda one: one.server.message, priority=5, wrap=True),
        ),
        name=lambda one: one.server.name,
        empty="No servers yet. Make one: devctl create NAME",
    )


async def monitor(fleet: DevServerApi, out: Output, names: tuple[str, ...], pause: Duration | None) -> None:
    """Without a pause, once. A cluster that was seen and is away for a while, as in an upgrade, is looked for again."""
    seen = False
    while True:
        try:
            readings = await _read(fleet, names)
            _show(out, readings, fleet.clock.now(), again=pause is not None)
            seen = True
        except Retry as error:
            if not seen or pause is None:
                raise
            out.warn(f"{error.sentence} What was shown before may be old.")
        if pause is None:
            return
        await fleet.clock.sleep(pause)


def format_gpus(text: str) -> tuple[str, ...]:
    """Formats each GPU as `87% 12.1/80.0Gi`, from nvidia-smi's lines of utilization, used and total memory."""
    found: list[str] = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) == 3 and all(cell.strip().isdecimal() for cell in row):
            use, used, total = (int(cell) for cell in row)
            found.append(f"{use}% {used / 1024:.1f}/{total / 1024:.1f}Gi")
    return tuple(found)


async def _read(fleet: DevServerApi, names: tuple[str, ...]) -> list[UsageRecord]:
    servers = [await fleet.server(name) for name in names] if names else await fleet.servers()
    used = await _used(fleet)
    rows = [(server, row) for server in servers for row in _rows(server)]
    readings: dict[int, UsageRecord] = {}

    async def read_row(number: int, server: DevServerObject, row: UsageRecord) -> None:
        cpu, memory = used.get(row.pod, ("", ""))
        works = row.status == Phase.RUNNING.value and server.status.ready
        gpus = await _gpus(fleet.at_rank(row.rank), server) if works else ()
        readings[number] = replace(row, cpu=cpu, memory=memory, gpus=gpus)

    async with anyio.create_task_group() as group:
        for number, (server, row) in enumerate(rows):
            group.start_soon(read_row, number, server, row)
    return [readings[number] for number in range(len(rows))]


def _rows(server: DevServerObject) -> list[UsageRecord]:
    """One row for the server, or one for each of its ranks."""
    record, status = ServerRecord.of(server), server.status
    if not status.ranks:
        pod = status.pod_names[0] if status.pod_names else ""
        return [UsageRecord(record, pod, None, record.phase, "", "", "", ())]
    return [
        UsageRecord(record, one.name, rank, _rank_phase(one), one.node or "", "", "", ())
        for rank, one in enumerate(status.ranks)
    ]


def _rank_phase(rank: Rank) -> str:
    if rank.ready:
        return Phase.RUNNING.value
    return (Phase.STARTING if rank.node else Phase.PENDING).value


async def _used(fleet: DevServerApi) -> dict[str, tuple[str, str]]:
    """CPU and memory of each Pod; empty without a metrics server or without the right to read it."""
    try:
        found = await fleet.client.list(_METRICS, fleet.namespace, Selector(labels=SERVER_LABEL))
    except (NotFound, Denied, Retry):
        return {}
    return {one.meta.name: _sum(one.containers) for one in found.items}


def _sum(containers: Sequence[ContainerUsage]) -> tuple[str, str]:
    cpu = sum((Quantity.parse(one.usage.get("cpu", "0")).milli for one in containers), 0)
    memory = sum((Quantity.parse(one.usage.get("memory", "0")).whole for one in containers), 0)
    return f"{cpu / 1000:.2f}", f"{memory / 2**30:.2f}Gi"


async def _gpus(fleet: DevServerApi, server: DevServerObject) -> tuple[str, ...]:
    with anyio.move_on_after(_GPU_PATIENCE_S):
        try:
            done = await exec_run(fleet, server.meta.name, _ASK_GPUS)
        except Error:
            # An image without nvidia-smi, or a server that stops just now.
            return ()
        return format_gpus(done.stdout.decode(errors="replace")) if done.code == 0 else ()
    return ()


def _show(out: Output, readings: Sequence[UsageRecord], now: Instant, *, again: bool) -> None:
    table = readings_table(now)
    if not again or out.shared.output not in {Format.TABLE, Format.WIDE}:
        out.show(readings, table)
        return
    lines = table_lines(table, readings, out.out, wide=out.shared.output is Format.WIDE) if readings else []
    # On a terminal the table stays in its place; elsewhere one follows the other.
    place = "\x1b[H\x1b[J" if is_live(out.out.stream, out.env) else ""
    out.text(place + "".join(f"{line}\n" for line in [f"{now}", *lines]))


def monitor_command(
    out: Output, names: tuple[str, ...], where: ClusterSelector, *, every: str, once: bool
) -> None:
    pause = None if once else parse_timeout(every)
    if pause is not None and pause < _PAUSE_MIN:
        raise Invalid(
            "devservers.every", f"{every} is too short a pause.", hint="Wait 1s or more; or say --once."
        )
    run_with_api(out, where, lambda fleet: monitor(fleet, out, names, pause))
