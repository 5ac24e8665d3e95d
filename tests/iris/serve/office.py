"""A controller in memory, and its callers: each with a token of their own."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from protobuf import Oneof

from neorion.iris.app.controller import start
from neorion.iris.app.endpoints import services
from neorion.iris.app.parts import ControllerParts, ControllerSettings
from neorion.iris.app.standby import SCHEMA
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.controllers.metrics import PrometheusControllerMetrics
from neorion.iris.model import AttemptId, Resources, SliceId, SliceState
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import ClusterServiceClient, JobServiceClient, WorkerServiceClient
from neorion.iris.model.record import Slice
from neorion.iris.ports import AttemptSpec
from neorion.iris.testing.memory_runtime import MemoryRuntime, ScriptedOutcome
from neorion.iris.worker import Identity, WorkerDaemon
from neorion.keel.base import Instant
from neorion.keel.clock import SystemClock, SystemIds, system_rng
from neorion.keel.rpc import (
    AsgiApp,
    ChainedAuthenticator,
    Channel,
    MemoryTransport,
    Principal,
    TokenAuthenticator,
    connect,
)
from neorion.keel.run import Supervisor
from neorion.keel.store import migrations_in, open_store
from neorion.keel.telemetry.metrics import Metrics

ACCOUNTS = TokenAuthenticator(
    {
        "root": Principal("root", frozenset({"admin", "user"})),
        "ada": Principal("ada", frozenset({"user"})),
        "bob": Principal("bob", frozenset({"user"})),
    }
)


@dataclass
class HandedOn:
    """The token for machines started by hand."""

    value: str = "by-hand"

    def renew(self) -> None:
        self.value += "-again"


@dataclass(frozen=True)
class Office:
    parts: ControllerParts
    metrics: Metrics
    transport: MemoryTransport

    def channel(self, token: str) -> Channel:
        return connect("memory:1", ids=SystemIds(), token=token, transport=self.transport)

    def jobs(self, token: str) -> JobServiceClient:
        return self.channel(token).client(JobServiceClient)

    def cluster(self, token: str) -> ClusterServiceClient:
        return self.channel(token).client(ClusterServiceClient)

    def worker(self, token: str) -> WorkerServiceClient:
        return self.channel(token).client(WorkerServiceClient)

    def slice(self, name: str) -> str:
        """A slice of the platform's; what its machines show."""
        piece = SliceId(name)
        self.parts.context.cluster.put_slice(Slice(piece, "group", Instant(1), SliceState.BOOTSTRAPPING))
        return self.parts.worker_tokens.slice_token(piece)

    def report_key(self, attempt: str) -> str:
        """The key that the worker of this attempt has from its order."""
        return self.parts.worker_tokens.report_key(AttemptId(attempt))

    async def join(self, token: str, piece: str = "by-hand-1") -> pb.JoinResponse:
        return await self.worker(token).join(joining(piece))

    async def started(self, job: str) -> pb.Task:
        """The job's first task, as soon as it has a place."""
        async for change in self.jobs("root").watch(pb.WatchRequest(job=job)):
            for task in change.tasks:
                if task.attempt:
                    return task
        raise AssertionError("it ended before it started")


@asynccontextmanager
async def working(
    there: Office, folder: Path, script: Callable[[AttemptSpec], ScriptedOutcome]
) -> AsyncGenerator[None]:
    """A machine with a worker, whose tasks fare as the script says."""
    clock = SystemClock()
    runtime = MemoryRuntime(folder / "runtime", clock, script)
    worker = WorkerDaemon(there.channel("by-hand"), runtime, folder / "worker", clock, system_rng())
    async with anyio.create_task_group() as group:
        group.start_soon(runtime.run)
        group.start_soon(worker.run, Identity("by-hand-1", "host", Resources(4000, 2**32, 2**32), {}))
        yield
        group.cancel_scope.cancel()


def joining(piece: str) -> pb.JoinRequest:
    total = pb.Resources(cpu_milli=4000, memory_bytes=2**32, disk_bytes=2**32)
    return pb.JoinRequest(slice=piece, host="host", total=total)


def asking(
    name: str, *, replicas: int = 1, cpu_milli: int = 1000, argv: Sequence[str] = ("true",)
) -> pb.SubmitRequest:
    spec = pb.JobSpec(
        name=name,
        entry=Oneof("command", pb.Command(argv=list(argv))),
        resources=pb.Resources(cpu_milli=cpu_milli),
        replicas=replicas,
    )
    return pb.SubmitRequest(spec=spec, key=name)


@asynccontextmanager
async def office(folder: Path, settings: ControllerSettings | None = None) -> AsyncGenerator[Office]:
    clock, rng, ids = SystemClock(), system_rng(), SystemIds()
    settings = replace(settings or ControllerSettings(folder, secret="a secret"), by_hand=HandedOn())
    async with (
        open_store(folder / "iris.db", migrations=migrations_in(SCHEMA), clock=clock) as store,
        Supervisor() as crew,
    ):
        metrics = Metrics()
        context = ControllerContext.for_store(store, clock, ids, rng, PrometheusControllerMetrics(metrics))
        parts = await start(settings, context, crew, _unwatched)
        callers = ChainedAuthenticator(parts.worker_tokens, ACCOUNTS)
        app = AsgiApp(services(parts), ids=ids, authenticator=callers, on_denied=parts.audit_log.denied)
        async with MemoryTransport(app) as transport:
            yield Office(parts, metrics, transport)
        await parts.context.journal.wait_durable()
        crew.cancel()


def _unwatched(name: str, seconds: float, *, failed: bool) -> None:
    pass
