"""The platform port over processes of this machine."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from neorion.iris.adapters.platforms.fault_injection import Behaviour, Gate
from neorion.iris.adapters.platforms.local.machine import Launch
from neorion.iris.adapters.platforms.local.slice import Ground, Piece
from neorion.iris.adapters.platforms.local.slice_store import Record, Records
from neorion.iris.adapters.platforms.slice_watch import News
from neorion.iris.model import SliceId
from neorion.iris.ports import SliceOrder, SliceSeen
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
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict[str, Behaviour])
    grace: Duration = field(default=Duration.of(seconds=10))


class LocalPlatform(AbstractAsyncContextManager["LocalPlatform"]):
    """Slices of processes that outlive the controller: entered again, it finds them by their records.

    Leaving it leaves the slices as they are; `shutdown` ends them.
    """

    def __init__(self, settings: LocalSettings, launch: Launch, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._gate = Gate(settings.behaviours)
        self._news = News()
        self._pieces: dict[SliceId, Piece] = {}
        self._group = anyio.create_task_group()
        self._exit = AsyncExitStack()
        # Whole, because machines are known by their folders to whoever comes after us, from wherever.
        folder = settings.folder.absolute()
        self._ground = Ground(
            clock=clock,
            folder=folder,
            records=Records(folder / "records"),
            launch=launch,
            variables=settings.variables,
            grace=settings.grace,
            tell=self._news.tell,
        )

    async def create_slice(self, order: SliceOrder) -> None:
        if order.id in self._pieces:
            return
        if not is_name(order.id) or order.machines < 1:
            raise Invalid("iris.slice_order", f"{order.id[:80]!r} × {order.machines} is no slice.")
        boots = self._gate.admit(order.group, len(self._of(order.group)))
        record = Record(order, self._clock.now(), stuck=not boots)
        try:
            self._ground.records.save(record)
        except OSError as error:
            raise Retry(
                "iris.slice_record",
                f"The slice {order.id} could not be recorded: {error.strerror}.",
                hint=f"See what is wrong with {self._settings.folder}.",
            ) from None
        self._take(record)
        self._news.tell(self._pieces[order.id].seen())

    async def list_slices(self, group: str) -> Sequence[SliceSeen]:
        return [piece.seen() for piece in self._of(group)]

    async def list_all_slices(self) -> Sequence[SliceSeen]:
        return [piece.seen() for piece in self._pieces.values()]

    async def describe(self, piece: SliceId) -> SliceSeen:
        return self._find(piece).seen()

    async def terminate(self, piece: SliceId) -> None:
        if (known := self._pieces.get(piece)) is not None:
            known.doom()

    async def lose(self, piece: SliceId) -> None:
        """Takes one machine of a slice away, as a power cut would: for demonstrations and tests."""
        await self._find(piece).lose()

    def changes(self) -> AsyncIterator[SliceSeen]:
        return self._news.listen()

    def discover_controller(self) -> str:
        return self._settings.controller

    @asynccontextmanager
    async def tunnel(self, address: str) -> AsyncGenerator[str, None]:
        """Everything is on this machine already."""
        yield address

    async def shutdown(self) -> None:
        pieces = list(self._pieces.values())
        for piece in pieces:
            piece.doom()
        for piece in pieces:
            await piece.gone.wait()

    def _find(self, piece: SliceId) -> Piece:
        if (known := self._pieces.get(piece)) is None:
            raise NotFound(
                "iris.no_slice", f"There is no slice {piece}.", hint="See which there are: iris slice list"
            )
        return known

    def _of(self, group: str) -> list[Piece]:
        return [piece for piece in self._pieces.values() if piece.group == group]

    def _take(self, record: Record) -> None:
        piece = Piece(record, self._gate.of(record.order.group), self._ground)
        self._pieces[record.order.id] = piece
        self._group.start_soon(self._live, record.order.id, piece, name=record.order.id)

    async def _live(self, name: SliceId, piece: Piece) -> None:
        await piece.live()
        del self._pieces[name]

    async def __aenter__(self) -> Self:
        self._exit.callback(os.close, self._ground.records.own())
        self._exit.callback(self._close)
        await self._exit.enter_async_context(self._group)
        for record in self._ground.records.all():
            self._take(record)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._exit.__aexit__(kind, error, trace)

    def _close(self) -> None:
        self._news.close()
        for piece in self._pieces.values():
            piece.close()
