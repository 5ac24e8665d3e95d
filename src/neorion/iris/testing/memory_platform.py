"""Platform in memory: slices boot, fail and end by the given clock."""

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
    """A slice. Times are of the monotonic clock; None means never."""

    order: SliceRequest
    boots: float | None
    lost: float | None
    goes: float | None = None
    hosts: tuple[str, ...] = ()
    failure: str = ""

    @property
    def due(self) -> float | None:
        """Time of the next change by itself."""
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
    """Simulated cloud that outlives its controllers. It has no background task: due changes happen at the next call.

    `set_faults` changes a group's faults, `lose` removes a machine, and `order` returns the request of a slice for
    simulated machines. Slices take `end_delay` to end.
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
        self._broadcaster = SliceBroadcaster()
        self._slices: dict[SliceId, _Slice] = {}

    async def create_slice(self, order: SliceRequest) -> None:
        self._apply_due_changes()
        if order.id in self._slices:
            return
        if not is_name(order.id) or order.machines < 1:
            raise Invalid("iris.slice_order", f"{order.id[:80]!r} × {order.machines} is not a valid slice.")
        behaviour = self._gate.of(order.group)
        boots, lost = None, None
        if self._gate.admit(order.group, len(await self.list_slices(order.group))):
            boots = self._clock.monotonic() + behaviour.boot_delay.seconds
            lost = boots + behaviour.lost_after.seconds if behaviour.lost_after is not None else None
        slice_ = self._slices[order.id] = _Slice(order, boots, lost)
        self._broadcaster.publish(slice_.seen())

    async def list_slices(self, group: str) -> Sequence[SliceStatus]:
        return [seen for seen in await self.list_all_slices() if seen.group == group]

    async def list_all_slices(self) -> Sequence[SliceStatus]:
        self._apply_due_changes()
        return [slice_.seen() for slice_ in self._slices.values()]

    async def describe(self, piece: SliceId) -> SliceStatus:
        self._apply_due_changes()
        return self._find(piece).seen()

    async def terminate(self, piece: SliceId) -> None:
        self._apply_due_changes()
        known = self._slices.get(piece)
        if known is not None and known.goes is None:
            known.goes = self._clock.monotonic() + self._end_delay.seconds
            self._broadcaster.publish(known.seen())

    def changes(self) -> AsyncIterator[SliceStatus]:
        # Subscribes now, not when the first change is requested.
        return self._follow(self._broadcaster.listen())

    def discover_controller(self) -> str:
        return self._controller

    @asynccontextmanager
    async def tunnel(self, address: str) -> AsyncGenerator[str, None]:
        yield address

    async def shutdown(self) -> None:
        for slice_ in list(self._slices):
            await self.terminate(slice_)
        while self._slices:
            await self._clock.sleep(self._until_due() or _AT_ONCE)
            self._apply_due_changes()

    def order(self, piece: SliceId) -> SliceRequest:
        return self._find(piece).order

    def set_faults(self, group: str, behaviour: FaultProfile) -> None:
        self._gate.set_faults(group, behaviour)

    async def lose(self, piece: SliceId) -> None:
        """Removes one machine of a slice."""
        self._apply_due_changes()
        self._lose(self._find(piece))

    def _find(self, piece: SliceId) -> _Slice:
        if (known := self._slices.get(piece)) is None:
            raise NotFound(
                "iris.no_slice",
                f"The slice {piece} does not exist.",
                hint="List the slices with: iris slice list.",
            )
        return known

    async def _follow(self, listener: SliceWatch) -> AsyncIterator[SliceStatus]:
        while True:
            self._apply_due_changes()
            if (seen := listener.next()) is not None:
                yield seen
            elif (span := self._until_due()) is not None:
                await wait_at_most(self._clock, span, listener.woken)
            else:
                await listener.woken()

    def _until_due(self) -> Duration | None:
        moments = [slice_.due for slice_ in self._slices.values()]
        soonest = min((moment for moment in moments if moment is not None), default=None)
        if soonest is None:
            return None
        # Rounded up, because a wait that ends too early would find nothing due.
        return Duration(ceil(max(0.0, soonest - self._clock.monotonic()) * 1e9))

    def _apply_due_changes(self) -> None:
        """Applies all changes that are due."""
        now = self._clock.monotonic()
        for slice_ in self._due(now):
            if slice_.goes is not None:
                slice_.hosts = ()
                del self._slices[slice_.order.id]
            elif slice_.boots is not None:
                slice_.boots = None
                slice_.hosts = tuple(f"{slice_.order.id}-{n}" for n in range(slice_.order.machines))
            else:
                slice_.lost = None
                if not slice_.failure:
                    self._lose(slice_)
                continue
            self._broadcaster.publish(slice_.seen())

    def _due(self, now: float) -> Iterable[_Slice]:
        """Yields the next due slice repeatedly, because a change may make another one due."""
        while True:
            due = [(moment, slice_) for slice_ in self._slices.values() if (moment := slice_.due) is not None]
            moment, slice_ = min(due, key=lambda pair: pair[0], default=(None, None))
            if moment is None or slice_ is None or moment > now:
                return
            yield slice_

    def _lose(self, slice_: _Slice) -> None:
        if slice_.hosts:
            lost, *rest = slice_.hosts
            slice_.hosts = tuple(rest)
            slice_.failure = slice_.failure or f"{lost} was lost."
            self._broadcaster.publish(slice_.seen())
