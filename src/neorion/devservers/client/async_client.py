"""One development server from Python, with the verbs of `devctl`."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypedDict, Unpack

from anyio import CancelScope, create_task_group, current_time
from anyio import Event as Moment

from neorion.devservers.client import file_copy, pod_access
from neorion.devservers.client.api import DevServerApi
from neorion.devservers.client.create_request import CreateRequest, DistributedRequest
from neorion.devservers.client.durations import parse_span
from neorion.devservers.client.flavor_change import plan_move
from neorion.devservers.client.kube_context import KubeContext, resolve_context
from neorion.devservers.client.server_diagnosis import Diagnosis
from neorion.devservers.client.wait import PATIENCE, until_stopped, wait_deleted, wait_ready
from neorion.devservers.decide import accrued
from neorion.devservers.model import Cost, DevServerStatus
from neorion.keel.base import Duration, NotFound
from neorion.keel.clock import SystemClock
from neorion.keel.kube import PodLogOptions
from neorion.keel.kube.client import connect
from neorion.keel.kube.core import Event
from neorion.keel.kube.streams import ExecResult
from neorion.keel.run import only_error

# After a cancellation, wait so long for the answer of the create request, so that the server can be deleted.
_LAST_WORD_S: Final = 10.0


class KubeSelection(TypedDict, total=False):
    """Which cluster and namespace; as for `devctl`, what is left out is found."""

    namespace: str
    context: str
    kubeconfig: Path | None


class CreateArgs(KubeSelection, total=False):
    """Options of a new server, named as in `devctl create`, and its cluster and namespace."""

    flavor: str
    image: str
    home_size: str
    time: str
    shared_volume: str
    ssh_keys: tuple[str, ...]
    owner: str
    distributed: DistributedRequest | None


class AsyncDevServer:
    """A server for as long as a block lasts.

    async with AsyncDevServer.create("mydev", flavor="cpu-small") as server:
        done = await server.exec(["python", "train.py"])

    The block of `create` begins when the server is ready, and deletes it at its end unless it is to be kept; its home
    stays for its retention. The block of `get` leaves it as it is.
    """

    def __init__(
        self, name: str, place: KubeContext, wish: CreateRequest | None = None, *, keep: bool = True
    ) -> None:
        self.name = name
        self._place = place
        self._wish = wish
        self._keep = keep
        self._stack = AsyncExitStack()
        self._fleet: DevServerApi | None = None

    @classmethod
    def create(cls, name: str, *, keep: bool = False, **wanted: Unpack[CreateArgs]) -> Self:
        place = resolve_context(
            wanted.get("namespace", ""), wanted.get("context", ""), wanted.get("kubeconfig")
        )
        wish = CreateRequest(
            name=name,
            flavor=wanted.get("flavor", ""),
            image=wanted.get("image", ""),
            home_size=wanted.get("home_size", ""),
            time=wanted.get("time", ""),
            shared_volume=wanted.get("shared_volume", ""),
            ssh_keys=wanted.get("ssh_keys", ()),
            owner=wanted.get("owner", ""),
            distributed=wanted.get("distributed"),
        )
        return cls(name, place, wish, keep=keep)

    @classmethod
    def get(cls, name: str, **where: Unpack[KubeSelection]) -> Self:
        return cls(name, resolve_context(**where))

    @property
    def fleet(self) -> DevServerApi:
        if self._fleet is None:
            raise RuntimeError("a server is used inside its `with` block")
        return self._fleet

    async def __aenter__(self) -> Self:
        try:
            client = await self._stack.enter_async_context(connect(self._place.cluster, "devctl"))
            self._fleet = DevServerApi(client, self._place.namespace, SystemClock())
            if self._wish is None:
                await self._fleet.server(self.name)
            else:
                await self._make(self._fleet, await self._fleet.validate(self._wish))
                await wait_ready(self._fleet, self.name)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)
        self._fleet = None

    async def status(self) -> DevServerStatus:
        return (await self.fleet.server(self.name)).status

    async def doctor(self) -> Diagnosis:
        """Why it is as it is, in one sentence, and what would help."""
        return await self.fleet.diagnose(await self.fleet.server(self.name))

    async def events(self) -> list[Event]:
        """Events of the server and of its objects, the oldest first."""
        return await self.fleet.events(self.name)

    async def cost(self) -> Cost | None:
        """Cost up to now; None before the operator has recorded any."""
        recorded = (await self.status()).cost
        return accrued(recorded, self.fleet.now()) if recorded else None

    async def wait(self, patience: Duration = PATIENCE) -> None:
        """Until it can be used."""
        await wait_ready(self.fleet, self.name, patience=patience)

    async def exec(
        self, command: Sequence[str], stdin: bytes = b"", *, rank: int | None = None
    ) -> ExecResult:
        """Runs a command to its end; its exit code is in what comes back. A text is for the shell, a list a program and its arguments."""
        return await pod_access.exec_run(self.fleet.at_rank(rank), self.name, command, stdin)

    async def start(self, time: str = "") -> None:
        await self.fleet.start(self.name, parse_span(time) if time else None)
        await self.wait()

    async def stop(self) -> None:
        """The home is kept."""
        await self.fleet.stop(self.name)
        await until_stopped(self.fleet, self.name)

    async def extend(self, time: str, *, shorten: bool = False) -> datetime:
        """Gives the new end."""
        return (await self.fleet.extend(self.name, parse_span(time), shorten=shorten)).end

    async def update(self, flavor: str) -> None:
        """Changes the flavor, and waits until the server stands on it if it runs."""
        move = await plan_move(self.fleet, self.name, flavor)
        await self.fleet.set_flavor(move.server, move.flavor.meta.name)
        if move.server.spec.running:
            await wait_ready(self.fleet, self.name, flavor=move.flavor.meta.name)

    async def delete(self) -> None:
        """Now, and not first at the end of the block."""
        self._keep = True
        await self.fleet.delete(self.name)
        await wait_deleted(self.fleet, self.name)

    async def _make(self, fleet: DevServerApi, manifest: dict[str, Any]) -> None:
        """Waits for the answer even when the block was cancelled, because only it shows whether to delete a server."""
        asking, answered = CancelScope(shield=True), Moment()

        async def ask() -> None:
            with asking:
                await fleet.make(manifest)
                self._stack.push_async_callback(self._leave)
            answered.set()

        try:
            # A task of its own: a shield alone does not keep asyncio's own cancellations away.
            async with create_task_group() as group:
                group.start_soon(ask)
                try:
                    await answered.wait()
                finally:
                    asking.deadline = current_time() + _LAST_WORD_S
        except BaseExceptionGroup as several:
            raise only_error(several) from None

    async def _leave(self) -> None:
        """Deletes the server even when the block was cancelled, because it would go on costing money."""
        if self._keep:
            return
        with CancelScope(shield=True), suppress(NotFound):
            await self.fleet.delete(self.name)

    def logs(self, *, follow: bool = False, tail: int | None = None) -> AsyncGenerator[bytes]:
        return pod_access.pod_logs(self.fleet, self.name, PodLogOptions(follow=follow, tail_lines=tail))

    async def copy_to(self, source: str | Path, target: str) -> None:
        await file_copy.copy_to(self.fleet, self.name, Path(source), target)

    async def copy_from(self, source: str, target: str | Path) -> tuple[file_copy.SkippedEntry, ...]:
        """Gives what had to be left out: links that lead out of the copy."""
        return await file_copy.copy_from(self.fleet, self.name, source, Path(target))

    def forward(self, port: int, local: int = 0) -> AbstractAsyncContextManager[int]:
        """While the block lasts, a port of this machine leads to the server's; it is given."""
        return pod_access.port_forward(self.fleet, self.name, port, ("127.0.0.1", local))
