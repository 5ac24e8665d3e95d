import asyncio
from collections.abc import Callable
from contextvars import Context

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from neorion.keel.base import Duration, Id, Instant, is_name
from neorion.keel.clock import (
    EPOCH,
    SeededIds,
    SystemClock,
    SystemIds,
    VirtualClock,
    born,
    seeded_rng,
    system_rng,
)
from neorion.keel.clock.ulid import ulid


class ShipId(Id):
    prefix = "ship"


def test_system_time_moves_forward_and_is_of_this_century():
    clock = SystemClock()
    before, began = clock.now(), clock.monotonic()
    assert clock.now() >= before > EPOCH
    assert clock.monotonic() >= began


class HastyLoop(asyncio.SelectorEventLoop):
    """Wakes everybody before their time, as uvloop does now and then."""

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when - 0.0015, callback, *args, context=context)


@pytest.mark.parametrize("loop", [asyncio.SelectorEventLoop, HastyLoop, uvloop.new_event_loop])
def test_a_sleep_is_never_shorter_than_was_asked_for(loop: Callable[[], asyncio.AbstractEventLoop]):
    clock, span = SystemClock(), Duration.of(ms=2)

    async def shortest() -> float:
        spans: list[float] = []
        for step in range(100):
            begin = clock.monotonic() + step * 1e-5
            # Each from another moment within a millisecond.
            while (began := clock.monotonic()) < begin:
                pass
            await clock.sleep(span)
            spans.append(clock.monotonic() - began)
        return min(spans)

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(shortest()) >= span.seconds


def test_system_ids_are_unique_names_and_secrets_are_long():
    ids = SystemIds()
    made = {ids.new(ShipId) for _ in range(1000)}
    assert len(made) == 1000
    assert all(is_name(one) and one.startswith("ship-") for one in made)
    assert len(ids.secret()) >= 43
    assert ids.secret() != ids.secret()


@given(
    st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1), st.integers(0, 2**80 - 1)
)
def test_ids_sort_by_birth(early: int, late: int, a: int, b: int):
    if early != late:
        assert (ulid(early, a) < ulid(late, b)) == (early < late)
    else:
        assert (ulid(early, a) < ulid(late, b)) == (a < b)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**80 - 1))
def test_an_id_tells_when_it_was_made(ms: int, chance: int):
    assert born(ShipId.made_of(ulid(ms, chance))) == Instant(ms * 1_000_000)


def test_a_text_that_holds_no_id_was_never_born():
    assert [born(text) for text in ("", "ship-1", "u" * 26, f"ship-{'0' * 25}!")] == [None] * 4


def test_the_same_seed_gives_the_same_ids():
    def names(seed: int) -> list[str]:
        clock = VirtualClock(lambda: 0.0)
        ids = SeededIds(seeded_rng(seed), clock)
        return [*(ids.new(ShipId) for _ in range(5)), ids.secret()]

    assert names(1) == names(1)
    assert names(1) != names(2)


def test_a_jump_of_the_wall_clock_does_not_move_monotonic_time():
    elapsed = 0.0
    clock = VirtualClock(lambda: elapsed)
    assert clock.now() == EPOCH
    elapsed = 1.5
    assert clock.now() == EPOCH + Duration.of(seconds=1.5)
    clock.jump(-3600)
    assert clock.now() < EPOCH
    assert clock.monotonic() == 1.5


def test_system_chance_is_chance():
    rng = system_rng()
    assert len({rng.random() for _ in range(100)}) > 90
