"""Iris with two controllers on one simulated database server: one leads, the other stands by."""

import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

from neorion.iris.app.standby import StandbyServer
from neorion.keel.base import Conflict, Duration, Error
from neorion.keel.rpc import Channel
from neorion.keel.rpc.connect_client import ConnectCaller
from neorion.keel.rpc.failover import FailoverCaller
from neorion.keel.run import only_error
from neorion.keel.sim import Host, World
from neorion.keel.store import MemoryServer, await_store
from tests.sim.iris_truth import LoggedErrors
from tests.sim.iris_wire import StreamTransport, attend
from tests.sim.iris_world import CALL_TIMEOUT, MIGRATIONS, Iris

CONTROLLERS = ("controller", "standby")
STORE_LEASE = Duration.of(seconds=3)
_RESTART_AFTER = Duration.of(ms=300)


class StandbyIris(Iris):
    """Both controllers, and everyone else with both addresses. `leader` is the host that opened the store last."""

    def __init__(self, world: World, folder: Path, machines: int) -> None:
        super().__init__(world, folder, machines, quick=False)
        # Some outlast the leases of the store and of the workers together.
        self.spans = (0.02, 1.0, 16.0, 24.0)
        self.database = world.host("database")
        self.server = MemoryServer(self.database.clock)
        self.standby = world.host("standby")
        self.leader = self.controller
        self._cut: dict[str, None] = {}

    def start(self) -> None:
        super().start()
        self.standby.start(self._control)

    def channel(self, host: Host, timeout: Duration = CALL_TIMEOUT) -> Channel:
        callers = [
            ConnectCaller(
                StreamTransport(self.world.network, _address(name)),
                f"http://{name}:1",
                host.ids,
                None,
                timeout,
            )
            for name in CONTROLLERS
        ]
        return Channel("http://controller:1,http://standby:1", FailoverCaller(callers))

    @contextmanager
    def cut_from_store(self, host: Host) -> Generator[None]:
        """While the block runs this controller does not reach the database, and everything else."""
        self._cut[host.name] = None
        try:
            yield
        finally:
            del self._cut[host.name]

    @property
    def other(self) -> Host:
        return self.standby if self.leader is self.controller else self.controller

    async def _control(self, host: Host) -> None:
        """As a supervisor runs it: a controller that was succeeded ends, and is started again."""
        while True:
            try:
                await self._stand_by(host)
            except* Conflict as lost:
                if _code(lost) != "store.fenced":
                    raise
            await host.clock.sleep(_RESTART_AFTER)

    async def _stand_by(self, host: Host) -> None:
        waiting = StandbyServer(host.ids)
        address = _address(host.name)
        link = self.server.link(host.name, lambda: host.name not in self._cut)
        with self.world.network.listen(address, partial(attend, waiting.app())):
            opened = await_store(
                link,
                waiting.explain,
                migrations=MIGRATIONS,
                clock=host.clock,
                lane=self.lane,
                lease=STORE_LEASE,
            )
            store = await opened.__aenter__()
        try:
            self.leader = host
            await self.lead(host, store, address)
        finally:
            await opened.__aexit__(None, None, None)


def _address(name: str) -> str:
    return f"{name}:http"


def _code(errors: BaseExceptionGroup[BaseException]) -> str:
    error = only_error(errors)
    return error.code if isinstance(error, Error) else ""


class _ExpectedEnds(logging.Filter):
    """A controller that was succeeded says so as an error. Here that is what is tested."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "store lost" not in record.getMessage()


@asynccontextmanager
async def standby_iris(world: World, folder: Path, machines: int = 3) -> AsyncGenerator[StandbyIris]:
    found = StandbyIris(world, folder, machines)
    watch = LoggedErrors(found.truth.break_law)
    watch.addFilter(_ExpectedEnds())
    logging.getLogger().addHandler(watch)
    try:
        found.start()
        yield found
    finally:
        logging.getLogger().removeHandler(watch)
