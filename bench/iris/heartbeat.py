"""One worker's heartbeat over our connections, beside the client of connectrpc over pyqwest, at one controller."""

import resource
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import pyqwest

from bench.iris.workers import Controller, controller
from bench.kit import Report
from bench.process import cpu_s
from neorion.iris.model.gen import iris_client, iris_connect
from neorion.iris.model.gen import iris_pb as pb
from neorion.keel.clock import SystemClock, SystemIds
from neorion.keel.rpc import connect

BEATS = 1000
WARM_UP = 50
REFERENCE = "connectrpc over pyqwest"
Beat = Callable[[], Awaitable[object]]
Client = Callable[[Controller], AbstractAsyncContextManager[Beat]]


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one heartbeat, in µs."""

    waited: float
    worker: float
    controller: float


@asynccontextmanager
async def ours(one: Controller) -> AsyncGenerator[Beat]:
    token = (one.folder / "worker.token").read_text()
    async with connect(one.address, ids=SystemIds(), token=token) as channel:
        joined = await channel.client(iris_client.WorkerServiceClient).join(join("ours"))
    async with connect(one.address, ids=SystemIds(), token=joined.token) as channel:
        calls = channel.client(iris_client.WorkerServiceClient)
        yield lambda: calls.report(pb.ReportRequest(worker=joined.worker))


@asynccontextmanager
async def connectrpc(one: Controller) -> AsyncGenerator[Beat]:
    token = (one.folder / "worker.token").read_text()
    async with pyqwest.HTTPTransport() as sockets:
        calls = iris_connect.WorkerServiceClient(
            one.address, http_client=pyqwest.Client(sockets), send_compression=None, accept_compression=()
        )
        joined = await calls.join(join("reference"), headers={"authorization": f"Bearer {token}"})
        headers = {"authorization": f"Bearer {joined.token}"}
        yield lambda: calls.report(pb.ReportRequest(worker=joined.worker), headers=headers)


def join(name: str) -> pb.JoinRequest:
    return pb.JoinRequest(slice=f"slice-{name}", host=name, total=pb.Resources(cpu_milli=1000))


async def cost(client: Client, one: Controller) -> Cost:
    """One heartbeat after the other over a connection that is warm."""

    def figures() -> tuple[float, float, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return SystemClock().monotonic(), used.ru_utime + used.ru_stime, cpu_s(one.pid)

    async with client(one) as beat:
        for _ in range(WARM_UP):
            await beat()
        before = figures()
        for _ in range(BEATS):
            await beat()
        spent = [after - start for start, after in zip(before, figures(), strict=True)]
    return Cost(*(1e6 * seconds / BEATS for seconds in spent))


def run(report: Report) -> None:
    with controller() as one:

        def measure(client: Client, part: str) -> float:
            return float(getattr(anyio.run(partial(cost, client, one)), part))

        for name, part in (
            ("one heartbeat", "waited"),
            ("one heartbeat, CPU of the worker", "worker"),
            ("one heartbeat, CPU of the controller", "controller"),
        ):
            report.compare(
                name,
                "µs",
                partial(measure, ours, part),
                (REFERENCE, partial(measure, connectrpc, part)),
            )
