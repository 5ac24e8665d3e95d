"""The links between hosts and their conditions: delay, loss, duplicates, cuts and healing."""

from collections.abc import Callable, Iterable
from contextvars import Context
from dataclasses import dataclass
from functools import partial

from neorion.keel.base import Invalid
from neorion.keel.clock import Rng
from neorion.keel.sim.loop import SeededLoop
from neorion.keel.sim.trace import Trace

Deliver = Callable[[], None]
Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """Delay in seconds, drawn between two bounds; loss and duplicates apply to datagrams only."""

    delay_s: tuple[float, float] = (0.0002, 0.002)
    drop: float = 0.0
    duplicate: float = 0.0

    def __post_init__(self) -> None:
        low, high = self.delay_s
        if not (0 <= low <= high and 0 <= self.drop <= 1 and 0 <= self.duplicate <= 1):
            raise Invalid(
                "sim.weather",
                f"{self} are not valid conditions of a link.",
                hint="Give delay_s as (least, most) with 0 <= least <= most, and drop and duplicate between 0 and 1.",
            )


class Links:
    """One directed link for each pair of names. Reliable messages wait at a cut; datagrams are lost."""

    def __init__(self, loop: SeededLoop, rng: Rng, trace: Trace, context: Context) -> None:
        self._loop = loop
        self._rng = rng
        self._trace = trace
        self._context = context
        self._weather: dict[Link, LinkConditions] = {}
        self._cut: dict[Link, list[Deliver]] = {}
        self.weather = LinkConditions()

    def set(self, one: str, other: str, weather: LinkConditions) -> None:
        """Sets the conditions between two hosts in both directions; `links.weather` applies to all others."""
        self._weather[one, other] = self._weather[other, one] = weather

    def cut(self, senders: Iterable[str], receivers: Iterable[str]) -> None:
        """Cuts one direction: messages of the senders do not reach the receivers."""
        receivers = tuple(receivers)
        for sender in senders:
            for receiver in receivers:
                if (sender, receiver) not in self._cut:
                    self._cut[sender, receiver] = []
                    self._trace.add(f"cut {sender} -> {receiver}")

    def partition(self, left: Iterable[str], right: Iterable[str]) -> None:
        """Cuts both directions."""
        left, right = tuple(left), tuple(right)
        self.cut(left, right)
        self.cut(right, left)

    def heal(self) -> None:
        """Repairs all cuts, and delivers the messages that waited."""
        cut, self._cut = self._cut, {}
        self._trace.add(f"heal {len(cut)} cuts")
        for link, waiting in cut.items():
            for deliver in waiting:
                self.carry(link, deliver)

    def carry(self, link: Link, deliver: Deliver) -> None:
        """Delivers reliably, as a connection does: late, perhaps very late, but exactly once."""
        self._after_delay(link, partial(self._arrive, link, deliver))

    def toss(self, link: Link, deliver: Deliver) -> None:
        """Sends a datagram: it may be lost or duplicated."""
        weather = self._weather.get(link, self.weather)
        if weather.drop and self._rng.random() < weather.drop:
            self._trace.add(f"lost {link[0]} -> {link[1]}")
            return
        copies = 1 + (weather.duplicate > 0 and self._rng.random() < weather.duplicate)
        for _ in range(copies):
            self._after_delay(link, partial(self._arrive_or_vanish, link, deliver))

    def _after_delay(self, link: Link, then: Deliver) -> None:
        delay = self._rng.uniform(*self._weather.get(link, self.weather).delay_s)
        self._loop.call_later(delay, then, context=self._context)

    def _arrive(self, link: Link, deliver: Deliver) -> None:
        waiting = self._cut.get(link)
        if waiting is None:
            deliver()
        else:
            waiting.append(deliver)

    def _arrive_or_vanish(self, link: Link, deliver: Deliver) -> None:
        if link in self._cut:
            self._trace.add(f"lost {link[0]} -> {link[1]} at a cut")
        else:
            deliver()
