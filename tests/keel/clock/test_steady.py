import pytest

from neorion.keel.base import Duration, Instant
from neorion.keel.clock import SteadyClock

pytestmark = pytest.mark.anyio


class SetClock:
    """A clock that people set."""

    def __init__(self) -> None:
        self.wall = Instant(10**18)
        self.ticks = 5.0

    def now(self) -> Instant:
        return self.wall

    def monotonic(self) -> float:
        return self.ticks

    async def sleep(self, span: Duration) -> None:
        self.ticks += span.seconds


async def test_a_clock_that_is_set_does_not_change_what_a_span_was():
    clock = SetClock()
    steady = SteadyClock(clock)
    began = steady.now()
    assert began == clock.wall
    await steady.sleep(Duration.of(seconds=2))
    clock.wall = clock.wall + Duration.of(hours=1)
    assert steady.now().since(began) == Duration.of(seconds=2)
    assert steady.monotonic() == 7
    clock.wall = Instant(1)
    assert steady.now().since(began) == Duration.of(seconds=2)


def test_the_next_process_reads_the_clock_anew():
    clock = SetClock()
    clock.wall = Instant(7)
    assert SteadyClock(clock).now() == Instant(7)
