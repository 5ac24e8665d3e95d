"""The platform port over processes of this machine."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from neorion.iris.adapters.platforms.fault_injection import FaultInjector, FaultProfile
from neorion.iris.adapters.platforms.local.machine import Cleanup, Launch, LocalMachine
from neorion.iris.adapters.platforms.local.slice import LocalSlice, PlatformContext
from neorion.iris.adapters.platforms.local.slice_store import LocalSliceRecord, SliceStore
from neorion.iris.adapters.platforms.slice_watch import SliceBroadcaster
from neorion.iris.model import SliceId
from neorion.iris.ports import SliceRequest, SliceStatus
from neorion.keel.base import Duration, Invalid, NotFound, Retry, is_name
from neorion.keel.clock import Clock


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`folder` holds the slices' records and files, `controller` is where workers find it.

    `variables` are the whole environment of workers: what the controller has in its own does not reach them.
    """

    folder: Path
    controller: str
    variables: Mapping[str, str]
    behaviours: Mapping[str, FaultProfile] = field(default_factory=dict[str, FaultProfile])
    grace: Duration = field(default=Duration.of(seconds=10))


async def _no_cleanup(_: LocalMachine) -> None:
    """Does nothing: machines whose tasks are processes leave nothing."""


class LocalPlatform(AbstractAsyncContextManager["LocalPlatform"]):
    """Slices of processes that outlive the controller: entered again, it finds them by their records.

    Leaving it leaves the slices as they are; `shutdown` ends them.
    """

    def __init__(
        self, settings: LocalSettings, launch: Launch, clock: Clock, cleanup: Cleanup = _no_cleanup
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._gate = FaultInjector(settings.behaviours)
        self._broadcaster = SliceBroadcaster()
        self._pieces: dict[SliceId, LocalSlice] = {}
        self._group = anyio.create_task_group()
        self._exit = AsyncExitStack()
        # Absolute, because a later controller with another working folder finds machines by their folders.
        folder = settings.folder.absolute()
        self._context = PlatformContext(
            clock=clock,
            folder=folder,
            records=SliceStore(folder / "records"),
            launch=launch,
            cleanup=cleanup,
            variables=settings.variables,
            grace=settings.grace,
            publish=self._broadcaster.publish,
        )

    async def create_slice(self, order: SliceRequest) -> None:
        if order.id in self._pieces:
            return
        if not is_name(order.id) or order.machines < 1:
            raise Invalid("iris.slice_order", f"{order.id[:80]!r} × {order.machines} is not a valid slice.")
        boots = self._gate.admit(order.group, len(self._of(order.group)))
        record = LocalSliceRecord(order, self._clock.now(), stuck=not boots)
        try:
            self._context.records.save(record)
        except OSError as error:
            raise Retry(
                "iris.slice_record",
                f"The slice {order.id} could not be recorded: {error.strerror}.",
                hint=f"See what is wrong with {self._settings.folder}.",
            ) from None
        self._take(record)
        self._broadcaster.publish(self._pieces[order.id].seen())

    async def list_slices(self, group: str) -> Sequence[SliceStatus]:
        return [piece.seen() for piece in self._of(group)]

    async def list_all_slices(self) -> Sequence[SliceStatus]:
        return [piece.seen() for piece in self._pieces.values()]

    async def describe(self, piece: SliceId) -> SliceStatus:
        return self._find(piece).seen()

    async def terminate(self, piece: SliceId) -> None:
        if (known := self._pieces.get(piece)) is not None:
            known.request_termination()

    async def lose(self, piece: SliceId) -> None:
        """Kills one machine of a slice, as a power cut would, for demonstrations and tests."""
        await self._find(piece).lose()

    def changes(self) -> AsyncIterator[SliceStatus]:
        return self._broadcaster.listen()

    def discover_controller(self) -> str:
        return self._settings.controller

    @asynccontextmanager
    async def tunnel(self, address: str) -> AsyncGenerator[str, None]:
        """Everything is on this machine already."""
        yield address

    async def shutdown(self) -> None:
        pieces = list(self._pieces.values())
        for piece in pieces:
            piece.request_termination()
        for piece in pieces:
            await piece.gone.wait()

    def _find(self, piece: SliceId) -> LocalSlice:
        if (known := self._pieces.get(piece)) is None:
            raise NotFound(
                "iris.no_slice", f"There is no slice {piece}.", hint="See which there are: iris slice list."
            )
        return known

    def _of(self, group: str) -> list[LocalSlice]:
        return [piece for piece in self._pieces.values() if piece.group == group]

    def _take(self, record: LocalSliceRecord) -> None:
        piece = LocalSlice(record, self._gate.of(record.order.group), self._context)
        self._pieces[record.order.id] = piece
        self._group.start_soon(self._live, record.order.id, piece, name=record.order.id)

    async def _live(self, name: SliceId, piece: LocalSlice) -> None:
        await piece.run()
        del self._pieces[name]

    async def __aenter__(self) -> Self:
        self._exit.callback(os.close, self._context.records.own())
        self._exit.callback(self._close)
        await self._exit.enter_async_context(self._group)
        for record in self._context.records.all():
            self._take(record)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._exit.__aexit__(kind, error, trace)

    def _close(self) -> None:
        self._broadcaster.close()
        for piece in self._pieces.values():
            piece.close()
