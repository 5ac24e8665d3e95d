"""A platform in memory: slices that boot, fail and go by the clock it is given."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import ceil

from neorion.iris.adapters.platforms.fault_injection import FaultInjector, FaultProfile
from neorion.iris.adapters.platforms.slice_watch import SliceBroadcaster, SliceWatch, wait_at_most
from neorion.iris.model import SliceId, SliceState
from neorion.iris.ports import SliceRequest, SliceStatus
from neorion.keel.base import Duration, Invalid, NotFound, is_name
from neorion.keel.clock import Clock

_AT_ONCE = Duration(0)


@dataclass(slots=True)
class _Slice:
    """A slice. Times are of the monotonic clock; None never comes."""

    order: SliceRequest
    boots: float | None
    lost: float | None
    goes: float | None = None
    hosts: tuple[str, ...] = ()
    failure: str = ""

    @property
    def due(self) -> float | None:
        """When it next changes by itself."""
        if self.goes is not None:
            return self.goes
        return self.boots if self.boots is not None else self.lost

    def seen(self) -> SliceStatus:
        if self.goes is not None:
            state = SliceState.DELETING
        elif self.failure:
            state = SliceState.FAILED
        else:
            state = SliceState.BOOTSTRAPPING if self.hosts else SliceState.CREATING
        return SliceStatus(self.order.id, self.order.group, state, self.hosts, self.failure)


class MemoryPlatform:
    """The cloud itself: it outlives the controllers that use it. It has no tasks; what is due happens when somebody looks.

    `behave` scripts a group's faults while it runs, `lose` takes a machine away, and `order` shows whoever plays the
    machines what their workers were told. Slices take `end_delay` to go.
    """

    def __init__(
        self,
        clock: Clock,
        behaviours: Mapping[str, FaultProfile] | None = None,
        *,
        controller: str = "memory:10000",
        end_delay: Duration = _AT_ONCE,
    ) -> None:
        self._clock = clock
        self._gate = FaultInjector(behaviours or {})
        self._controller = controller
        self._end_delay = end_delay
        self._news = SliceBroadcaster()
        self._pieces: dict[SliceId, _Slice] = {}

    async def create_slice(self, order: SliceRequest) -> None:
        self._settle()
        if order.id in self._pieces:
            return
        if not is_name(order.id) or order.machines < 1:
            raise Invalid("iris.slice_order", f"{order.id[:80]!r} × {order.machines} is no slice.")
        behaviour = self._gate.of(order.group)
        boots, lost = None, None
        if self._gate.admit(order.group, len(await self.list_slices(order.group))):
            boots = self._clock.monotonic() + behaviour.boot_delay.seconds
            lost = boots + behaviour.lost_after.seconds if behaviour.lost_after is not None else None
        piece = self._pieces[order.id] = _Slice(order, boots, lost)
        self._news.tell(piece.seen())

    async def list_slices(self, group: str) -> Sequence[SliceStatus]:
        return [seen for seen in await self.list_all_slices() if seen.group == group]

    async def list_all_slices(self) -> Sequence[SliceStatus]:
        self._settle()
        return [piece.seen() for piece in self._pieces.values()]

    async def describe(self, piece: SliceId) -> SliceStatus:
        self._settle()
        return self._find(piece).seen()

    async def terminate(self, piece: SliceId) -> None:
        self._settle()
        known = self._pieces.get(piece)
        if known is not None and known.goes is None:
            known.goes = self._clock.monotonic() + self._end_delay.seconds
            self._news.tell(known.seen())

    def changes(self) -> AsyncIterator[SliceStatus]:
        # Listens from now on, not from when the first change is asked for.
        return self._follow(self._news.listen())

    def discover_controller(self) -> str:
        return self._controller

    @asynccontextmanager
    async def tunnel(self, address: str) -> AsyncGenerator[str, None]:
        yield address

    async def shutdown(self) -> None:
        for piece in list(self._pieces):
            await self.terminate(piece)
        while self._pieces:
            await self._clock.sleep(self._until_due() or _AT_ONCE)
            self._settle()

    def order(self, piece: SliceId) -> SliceRequest:
        return self._find(piece).order

    def behave(self, group: str, behaviour: FaultProfile) -> None:
        self._gate.behave(group, behaviour)

    async def lose(self, piece: SliceId) -> None:
        """Takes one machine of a slice away."""
        self._settle()
        self._lose(self._find(piece))

    def _find(self, piece: SliceId) -> _Slice:
        if (known := self._pieces.get(piece)) is None:
            raise NotFound(
                "iris.no_slice", f"There is no slice {piece}.", hint="See which there are: iris slice list."
            )
        return known

    async def _follow(self, listener: SliceWatch) -> AsyncIterator[SliceStatus]:
        while True:
            self._settle()
            if (seen := listener.next()) is not None:
                yield seen
            elif (span := self._until_due()) is not None:
                await wait_at_most(self._clock, span, listener.woken)
            else:
                await listener.woken()

    def _until_due(self) -> Duration | None:
        moments = [piece.due for piece in self._pieces.values()]
        soonest = min((moment for moment in moments if moment is not None), default=None)
        if soonest is None:
            return None
        # Rounded up: a wait that ends a moment early would find nothing due.
        return Duration(ceil(max(0.0, soonest - self._clock.monotonic()) * 1e9))

    def _settle(self) -> None:
        """Lets everything happen that is due."""
        now = self._clock.monotonic()
        for piece in self._due(now):
            if piece.goes is not None:
                piece.hosts = ()
                del self._pieces[piece.order.id]
            elif piece.boots is not None:
                piece.boots = None
                piece.hosts = tuple(f"{piece.order.id}-{n}" for n in range(piece.order.machines))
            else:
                piece.lost = None
                if not piece.failure:
                    self._lose(piece)
                continue
            self._news.tell(piece.seen())

    def _due(self, now: float) -> Iterable[_Slice]:
        """The next one due, again and again: what just happened may make something else due."""
        while True:
            due = [(moment, piece) for piece in self._pieces.values() if (moment := piece.due) is not None]
            moment, piece = min(due, key=lambda pair: pair[0], default=(None, None))
            if moment is None or piece is None or moment > now:
                return
            yield piece

    def _lose(self, piece: _Slice) -> None:
        if piece.hosts:
            lost, *rest = piece.hosts
            piece.hosts = tuple(rest)
            piece.failure = piece.failure or f"{lost} was lost."
            self._news.tell(piece.seen())
