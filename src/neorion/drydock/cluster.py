"""One cluster: starts, repairs and inspects its parts."""

import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from neorion.drydock.api import Api
from neorion.drydock.binaries import BinaryCache, Tell, ignore_progress
from neorion.drydock.control import (
    api_server,
    controller_manager,
    etcd,
    log_keeper,
    make_identities,
    scheduler,
)
from neorion.drydock.host import Component, UndoLog, end, running, start
from neorion.drydock.layout import LOOPBACK, Layout, PortOffset
from neorion.drydock.machine import ask
from neorion.drydock.network import reaching_clusters
from neorion.drydock.pki import Pki
from neorion.keel.base import Deadline, Duration, Error, NotFound, Terminal
from neorion.keel.clock import Clock
from neorion.keel.kube import client as kube
from neorion.keel.kube.client.transport import HttpRequest

# Four seconds on an idle machine; a busy one may need ten times as long.
_START_MOST: Final = Duration.of(seconds=90)
_POLL_EVERY: Final = Duration.of(ms=50)
# A process between fork and exec cannot be identified; on a busy machine that can last for some polls.
_MISSED_MOST: Final = 20
_LOG_TAIL_CHARS: Final = 400
# Two of its start hooks begin with a second's wait. One of them creates the rights of other users.
_SERVES_ADMINISTRATORS: Final = (
    "/readyz?exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
)
# The API server creates them itself, soon after it starts.
_NAMESPACES: Final = ("kube-system", "kube-node-lease", "default")
# Created in every namespace, each by its own controller.
NEEDED_BY_PODS: Final = ("serviceaccounts/default", "configmaps/kube-root-ca.crt")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of this machine, running or not."""

    layout: Layout
    shelf: BinaryCache
    clock: Clock
    pki: Pki = field(init=False)
    ledger: UndoLog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pki", Pki(self.layout.pki, self.clock))
        object.__setattr__(self, "ledger", UndoLog(self.layout.folder))

    @property
    def name(self) -> str:
        return self.layout.name

    @property
    def kubeconfig(self) -> Path:
        return self.layout.kubeconfig

    @asynccontextmanager
    async def api(self) -> AsyncGenerator[Api]:
        """Connects as the administrator."""
        self._require_made()
        authority, chain, key = (
            path.read_text()
            for path in (self.pki.certificate("ca"), self.pki.certificate("admin"), self.pki.key("admin"))
        )
        server = kube.ClusterConfig(
            self.layout.server, kube.CaBundle(authority), kube.ClientCertificate(chain, key)
        )
        async with kube.connect(server, "drydock", self.clock) as client:
            yield Api(client.transport)

    def control_plane(self) -> list[Component]:
        layout, pki, shelf = self.layout, self.pki, self.shelf
        return [
            etcd(layout, pki, shelf),
            api_server(layout, pki, shelf),
            controller_manager(layout, pki, shelf),
            scheduler(layout, shelf),
            log_keeper(layout),
        ]

    async def start_control_plane(self, tell: Tell = ignore_progress) -> None:
        """Starts missing parts, and returns when the API server and its controllers work."""
        await self.start_api_server(tell)
        await self.start_controllers(tell)

    async def start_api_server(self, tell: Tell = ignore_progress) -> None:
        """Starts etcd and the API server.

        Returns when it serves administrators; other users get their rights a second later.
        """
        self.layout.make_folders()
        make_identities(self.layout, self.pki)
        store, server, *_ = self.control_plane()
        tell("starting etcd")
        await self.ensure(store)
        await self.reachable(store, self.layout.port(PortOffset.ETCD))
        tell("starting the API server")
        await self.ensure(server)
        async with self.api() as api:
            for path in (_SERVES_ADMINISTRATORS, *(f"/api/v1/namespaces/{name}" for name in _NAMESPACES)):
                await self.until(server, partial(api.get, path))

    async def start_controllers(self, tell: Tell = ignore_progress) -> None:
        """Starts the controllers after the API server. Returns when the whole control plane works."""
        _, server, *clients = self.control_plane()
        async with self.api() as api:
            await self.until(server, lambda: api.get("/readyz"))
            tell("starting the controllers")
            for part in clients:
                await self.ensure(part)
            # The first effect of a working controller manager.
            for thing in NEEDED_BY_PODS:
                await self.until(clients[0], partial(api.get, f"/api/v1/namespaces/default/{thing}"))

    async def ensure(self, part: Component) -> None:
        """Runs a part with exactly this command line. One that runs with other flags is restarted."""
        found = [process for process in running(self.layout.folder, part.name) if process.argv == part.argv]
        if not found:
            await self.stop(part.name)
            start(self.layout.folder, part, self.layout.log(part.name))

    async def stop(self, part: str, by: signal.Signals = signal.SIGKILL) -> None:
        """Ends a part and its child processes; `start_control_plane` restarts parts of the control plane."""
        await end(self.layout.folder, part, by)

    async def kubectl(self, *args: str, say: str = "") -> str:
        """Runs kubectl as the administrator; `say` is its standard input."""
        argv = [self.shelf.path("kubectl"), *args]
        return await ask(argv, say=say, env=self.kubectl_env(os.environ))

    def kubectl_env(self, env: Mapping[str, str]) -> dict[str, str]:
        """The environment for kubectl. The discovery cache is per cluster, because other clusters reuse the address."""
        self._require_made()
        own = {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.layout.folder / "kubectl")}
        return {**reaching_clusters(env), **own}

    async def reachable(self, part: Component, port: int) -> None:
        """Waits until the port accepts connections."""

        async def connect() -> None:
            async with await anyio.connect_tcp(LOOPBACK, port):
                pass

        await self.until(part, connect)

    async def answers(self, part: Component, port: int) -> None:
        """Waits until the part reports that it is ready."""
        async with kube.connect(
            kube.ClusterConfig(f"http://{LOOPBACK}:{port}"), "drydock", self.clock
        ) as client:
            await self.until(part, lambda: client.transport.once(HttpRequest("GET", "/readyz")))

    async def until(self, part: Component, works: Callable[[], Awaitable[object]]) -> None:
        """Repeats `works` until it succeeds; fails if the part ends."""
        missed = 0
        with anyio.move_on_after(_START_MOST.seconds):
            while not await _is_fine(works):
                missed = 0 if running(self.layout.folder, part.name) else missed + 1
                if missed == _MISSED_MOST:
                    raise self._ended(part)
                await self.clock.sleep(_POLL_EVERY)
            return
        raise Deadline(
            "drydock.slow_start",
            f"{part.name} was not ready within {_START_MOST}.",
            hint=f"Read its log: neorion drydock logs {part.name} --name {self.name}",
        )

    def _require_made(self) -> None:
        """Fails for a cluster whose creation was interrupted before it had a kubeconfig."""
        if not self.kubeconfig.exists():
            raise NotFound(
                "drydock.half_made",
                f"Cluster {self.name} was not created completely.",
                hint=f"Go on: neorion drydock up --name {self.name}; or remove it: neorion drydock down --name {self.name}",
            )

    def _ended(self, part: Component) -> Terminal:
        log = self.layout.log(part.name)
        words = log.read_text(errors="replace")[-_LOG_TAIL_CHARS:].strip() if log.exists() else ""
        return Terminal(
            "drydock.part_ended",
            f"{part.name} ended while it started: {words or 'it printed nothing'}",
            hint=f"The whole log: neorion drydock logs {part.name} --name {self.name}",
        )


async def _is_fine(works: Callable[[], Awaitable[object]]) -> bool:
    try:
        await works()
    except (Error, OSError):
        return False
    return True
