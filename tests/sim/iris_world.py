"""A whole iris in one simulated world: controller, workers with their engines, and a client with a list of wishes."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from neorion.iris.app.controller import start
from neorion.iris.app.endpoints import services
from neorion.iris.app.parts import ControllerParts, ControllerSettings
from neorion.iris.app.standby import SCHEMA
from neorion.iris.controllers.context import ControllerContext
from neorion.iris.model import Resources, WorkerShape
from neorion.iris.model.gen import iris_pb as pb
from neorion.iris.model.gen.iris_client import ClusterServiceClient, JobServiceClient
from neorion.iris.model.lease import WorkerLeaseTiming
from neorion.iris.ports import AttemptExit, AttemptSpec, ExitKind
from neorion.iris.testing.memory_runtime import MemoryRuntime, ScriptedOutcome
from neorion.iris.worker import CALL_TIMEOUT, Identity, WorkerDaemon
from neorion.keel.base import Duration, NotFound, Retry
from neorion.keel.clock import Rng
from neorion.keel.rpc import AsgiApp, Channel, connect
from neorion.keel.run import Supervisor
from neorion.keel.sim import Host, SeededLoop, World
from neorion.keel.store import InlineExecutor, MemoryDisk, Store, migrations_in, open_store
from tests.sim.iris_truth import LoggedErrors, Machine, Truth
from tests.sim.iris_wire import ADDRESS, StreamTransport, attend

T = TypeVar("T")
WORKER = Resources(4000, 4, 4)
GANG_KEY = "slice"
LEASE = WorkerLeaseTiming.within(Duration.of(seconds=4.6))
MIGRATIONS = migrations_in(SCHEMA)


class SlowLane(InlineExecutor):
    """A disk that takes its time: what is on its way when the host crashes may be there or not."""

    def __init__(self, loop: SeededLoop, rng: Rng) -> None:
        self._loop = loop
        self._rng = rng
        self.slowest_s = 0.002
        self.jobs = 0

    def start(self, job: Callable[[], None]) -> None:
        self.jobs += 1
        self._loop.call_later(self._rng.uniform(0, self.slowest_s), job)

    def deliver(self, news: Callable[[], None]) -> None:
        self._loop.call_later(self._rng.uniform(0, self.slowest_s), news)


class Iris:
    """The hosts and what runs on them. `desk` and `workers` are those of the present lives."""

    def __init__(self, world: World, folder: Path, machines: int, *, quick: bool) -> None:
        self.world = world
        # Many tasks that are over in a moment, instead of a few that last.
        self.quick = quick
        self.spans: tuple[float, ...] = (0.001, 0.01) if quick else (0.01, 0.02, 0.3, 1.0, 4.0)
        self.folder = folder
        self.truth = Truth()
        self.lane = SlowLane(world.loop, world.chance("store"))
        self.controller = world.host("controller")
        self.client = world.host("client")
        self.parts: ControllerParts | None = None
        self.workers: dict[str, WorkerDaemon] = {}
        self._disk = MemoryDisk()
        self._inspected = 0
        self._troubled: dict[str, None] = {}
        self._fates = world.chance("fates")
        for number in range(1, machines + 1):
            engine = world.host(f"engine-{number}")
            runtime = MemoryRuntime(folder / engine.name, engine.clock, self._fate, self.truth.began)
            self.truth.machines.append(Machine(world.host(f"worker-{number}"), engine, runtime))

    def start(self) -> None:
        self.world.check(self._violations)
        self.controller.start(self._control)
        for machine in self.truth.machines:
            machine.engine.start(partial(_run_engine, machine))
            machine.daemon.start(self._work)

    def channel(self, host: Host, timeout: Duration = CALL_TIMEOUT) -> Channel:
        transport = StreamTransport(self.world.network)
        return connect("controller:1", ids=host.ids, timeout=timeout, transport=transport)

    @cached_property
    def jobs(self) -> JobServiceClient:
        return self.channel(self.client, Duration.of(seconds=1)).client(JobServiceClient)

    @cached_property
    def cluster(self) -> ClusterServiceClient:
        return self.channel(self.client, Duration.of(seconds=1)).client(ClusterServiceClient)

    @cached_property
    def patient_jobs(self) -> JobServiceClient:
        return self.channel(self.client, Duration.of(seconds=4)).client(JobServiceClient)

    async def submit(self, key: str, spec: pb.JobSpec, blobs: Sequence[pb.Blob] = ()) -> str:
        """Until it is acknowledged; the key makes that safe."""
        while True:
            try:
                request = pb.SubmitRequest(spec=spec, key=key, blobs=[*blobs])
                answer = await self.jobs.submit(request)
            except Retry:
                await self.world.sleep(0.2)
            else:
                self.truth.accept(key, answer.id)
                return answer.id

    async def cancel(self, job: str) -> None:
        while True:
            try:
                await self.jobs.cancel(pb.CancelRequest(job=job))
            except Retry:
                await self.world.sleep(0.2)
            else:
                return

    async def drain_one_for(self, seconds: float) -> None:
        """Empties some worker for a while."""
        workers = await self._asked(lambda: self.cluster.workers(pb.WorkersRequest()))
        if workers.workers:
            name = self.world.rng.choice(workers.workers).id
            for undo in (False, True):
                # One that is lost meanwhile is not there to be given work again.
                with suppress(NotFound):
                    await self._asked(
                        lambda undo=undo: self.cluster.drain(pb.DrainRequest(worker=name, undo=undo))
                    )
                await self.world.sleep(seconds)

    async def read_logs(self, job: str) -> None:
        """Whatever a task that ended well has written is there to be read when its end is told."""
        tasks = await self._asked(lambda: self.jobs.tasks(pb.TasksRequest(job=job)))
        for task in tasks.tasks:
            if task.state == "succeeded":
                self.truth.read(task, await self._asked(lambda task=task: self._log(task)))

    async def _log(self, task: pb.Task) -> bytes:
        request = pb.LogsRequest(job=task.job, task=task.index)
        return b"".join([chunk.text async for chunk in self.patient_jobs.logs(request)])

    async def _asked(self, question: Callable[[], Awaitable[T]]) -> T:
        """Until it is answered; asking twice changes nothing."""
        while True:
            try:
                return await question()
            except Retry:
                await self.world.sleep(0.2)

    async def ended(self, job: str) -> None:
        """Until the client has heard how the job ended, twice."""
        heard = 0
        while heard < 2:
            try:
                answer = await self.patient_jobs.wait(pb.WaitRequest(job=job, timeout_ms=3_000))
            except Retry:
                await self.world.sleep(0.2)
                continue
            if answer.tasks:
                self.truth.hear(answer)
                heard += 1
                await self.world.sleep(self.world.rng.uniform(0, 1))

    @contextmanager
    def trouble(self, name: str) -> Generator[bool]:
        """For as long as the block runs, this part is in trouble; True if it was already."""
        spared = name in self._troubled
        self._troubled[name] = None
        try:
            yield spared
        finally:
            if not spared:
                del self._troubled[name]

    def story(self) -> str:
        """Who has not ended, for the message of a failure."""
        if self.parts is None:
            return "the controller is down"
        cluster = self.parts.context.cluster
        return "; ".join(
            f"{task.job}/{task.index} {task.state} {cluster.attempts.get(task.attempt)}"
            for job in cluster.jobs.values()
            if not job.state.ended
            for task in cluster.tasks[job.id]
        )

    async def check_quiet(self) -> None:
        """Everything has ended: what is left over is let go, and then nothing is written and nothing is kept."""
        await self.world.sleep(7)
        parts = self.parts
        assert parts is not None
        writes = self.lane.jobs
        await self.world.sleep(3)
        assert self.lane.jobs == writes, "something is written though nothing happens"
        assert not parts.context.cluster.attempts, (
            f"attempts that never end: {parts.context.cluster.attempts}"
        )
        for machine in self.truth.machines:
            assert not machine.runtime.known(), f"not forgotten: {machine.runtime.known()}"
        for leftover in kept(parts):
            assert not leftover, f"kept for nobody: {leftover}"

    def _violations(self) -> list[Any]:
        parts: Any = self.parts
        if parts is not None and parts.context.journal._noted != self._inspected:
            self._inspected = parts.context.journal._noted
            self.truth.inspect(parts)
        return self.truth.violations()

    def _fate(self, order: AttemptSpec) -> ScriptedOutcome:
        rng = self._fates
        run_s = rng.choice(self.spans) * rng.uniform(0.5, 1)
        fails = dict(order.environment.variables)["FAILS"]
        failed = rng.random() < float(fails)
        value = b"" if failed else order.attempt.encode()
        name = order.attempt.encode()
        end = AttemptExit(ExitKind.EXIT, int(failed))
        return ScriptedOutcome(
            rng.choice((0.001, 0.1)), run_s, end, value, b"%s begins\n" % name, b"%s ends\n" % name
        )

    async def _control(self, host: Host) -> None:
        self.parts = None
        self._disk.crash()
        async with open_store(self._disk, migrations=MIGRATIONS, clock=host.clock, lane=self.lane) as store:
            await self.lead(host, store, ADDRESS)

    async def lead(self, host: Host, store: Store, address: str) -> None:
        """The life of a controller that owns the store."""
        shapes = [WorkerShape(WORKER, {GANG_KEY: "slice-a"}, len(self.truth.machines))]
        settings = ControllerSettings(self.folder / "controller", shapes=shapes, lease=LEASE)
        settings.folder.mkdir(parents=True, exist_ok=True)
        async with Supervisor() as crew:
            context = ControllerContext.for_store(store, host.clock, host.ids, host.rng)
            parts = self.parts = await start(settings, context, crew, _unwatched)
            app = AsgiApp(services(parts), ids=host.ids)
            app.check_leader = store.check_lease
            # When its loops have begun: a run that ended before that would leave coroutines nobody awaited.
            await host.clock.sleep(Duration.of(ms=1))
            self.truth.remembered(parts)
            with self.world.network.listen(address, partial(attend, app)):
                await anyio.sleep_forever()

    async def _work(self, host: Host) -> None:
        machine = next(one for one in self.truth.machines if one.daemon is host)
        worker = WorkerDaemon(
            self.channel(host), machine.runtime, self.folder / host.name, host.clock, host.rng
        )
        self.workers[host.name] = worker
        await worker.run(Identity("slice-a", host.name, WORKER, {}))


def _unwatched(name: str, seconds: float, *, failed: bool) -> None:
    pass


async def _run_engine(machine: Machine, host: Host) -> None:
    del host
    await machine.runtime.run()


@asynccontextmanager
async def iris(world: World, folder: Path, machines: int = 3, *, quick: bool = False) -> AsyncGenerator[Iris]:
    found = Iris(world, folder, machines, quick=quick)
    watch = LoggedErrors(found.truth.break_law)
    logging.getLogger().addHandler(watch)
    try:
        found.start()
        yield found
    finally:
        logging.getLogger().removeHandler(watch)


def kept(parts: ControllerParts) -> list[Any]:
    """What must be empty when nothing is under way."""
    private: Any = parts
    return [
        private.context.job_ended._events,
        private.context.first_attempt_started._events,
        private.context.journal._waiting,
        private.log_store._logs,
        {worker: queue for worker, queue in private.dispatcher._queues.items() if queue.start or queue.stop},
        private.dispatcher._queues.keys() - private.context.cluster.workers.keys(),
        parts.lifecycle.moved.is_set(),
    ]
