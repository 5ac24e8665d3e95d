from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide import (
    ActivityHistory,
    ActivitySignal,
    ActivitySnapshot,
    ActivitySource,
    ProbeReading,
    failed_probe,
    next_history,
)

START = datetime(2026, 11, 16, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def second_look(reading: ProbeReading, after: timedelta = 10 * MINUTE) -> ActivitySnapshot:
    """What is seen of a server that was quiet at first."""
    sight = next_history(ActivityHistory("pod", START, timedelta(seconds=100)), "pod", reading, START + after)
    assert sight.look is not None
    return sight.look


def test_the_first_reading_says_nothing_yet_because_cpu_is_used_between_two():
    sight = next_history(None, "pod", ProbeReading(cpu=timedelta(seconds=5)), START)
    assert sight.look is None
    again = next_history(sight, "pod", ProbeReading(cpu=timedelta(seconds=5)), START + MINUTE)
    assert again.look == ActivitySnapshot(START + MINUTE)


def test_cpu_counts_from_a_twentieth_of_one():
    under = second_look(ProbeReading(cpu=timedelta(seconds=129)))
    over = second_look(ProbeReading(cpu=timedelta(seconds=130)))
    assert under.latest is None
    assert over.latest == ActivitySignal(ActivitySource.CPU, START + 10 * MINUTE)


def test_a_server_whose_cpu_cannot_be_read_is_never_known_to_be_idle():
    look = next_history(None, "pod", ProbeReading(), START).look
    assert look is not None
    assert look.unknown == (ActivitySource.CPU,)
    assert not look.proves_idle(START)


def test_a_container_that_began_anew_is_compared_with_itself_alone():
    before = ActivityHistory("pod", START, timedelta(hours=3))
    assert next_history(before, "pod", ProbeReading(cpu=timedelta(seconds=1)), START + MINUTE).look is None


def test_another_pod_knows_nothing_of_the_last():
    before = ActivityHistory(
        "old", START, timedelta(0), ActivitySnapshot(START, (ActivitySignal(ActivitySource.GPU, START),))
    )
    assert next_history(before, "new", ProbeReading(cpu=timedelta(0)), START + MINUTE).look is None


def test_the_latest_sign_of_each_source_is_remembered():
    quiet = ActivityHistory("pod", START - MINUTE, timedelta(0))
    sight = next_history(
        quiet, "pod", ProbeReading(((ActivitySource.SESSION, timedelta(0)),), timedelta(0)), START
    )
    sight = next_history(
        sight, "pod", ProbeReading(((ActivitySource.TERMINAL, MINUTE),), timedelta(0)), START + 9 * MINUTE
    )
    assert sight.look is not None
    assert sight.look.signs == (
        ActivitySignal(ActivitySource.SESSION, START),
        ActivitySignal(ActivitySource.TERMINAL, START + 8 * MINUTE),
    )
    assert sight.look.proves_idle(START + 10 * MINUTE)
    assert not sight.look.proves_idle(START + 11 * MINUTE)


def test_who_cannot_be_looked_into_is_unknown_and_not_forgotten():
    signs = (ActivitySignal(ActivitySource.CPU, START),)
    known = ActivityHistory("pod", START, timedelta(seconds=4), ActivitySnapshot(START, signs))
    lost = failed_probe(failed_probe(known, "pod", START + MINUTE), "pod", START + 2 * MINUTE)
    assert lost.look == ActivitySnapshot(START + 2 * MINUTE, signs, tuple(sorted(ActivitySource)))
    assert (lost.misses, lost.cpu) == (2, timedelta(seconds=4))
    found = next_history(lost, "pod", ProbeReading(cpu=timedelta(seconds=4)), START + 3 * MINUTE)
    assert (found.look, found.misses) == (ActivitySnapshot(START + 3 * MINUTE, signs), 0)


@given(age=st.timedeltas(), cpu=st.none() | st.timedeltas(min_value=timedelta(0)))
def test_whatever_a_pod_says_no_sign_lies_in_the_future(age: timedelta, cpu: timedelta | None):
    look = second_look(
        ProbeReading(((ActivitySource.TERMINAL, age),), cpu if cpu is None else cpu + timedelta(seconds=100))
    )
    assert all(sign.active <= look.taken for sign in look.signs)
