from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide import Look, Reading, Sight, Sign, Source, follow, missed

START = datetime(2026, 11, 16, 8, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def second_look(reading: Reading, after: timedelta = 10 * MINUTE) -> Look:
    """What is seen of a server that was quiet at first."""
    sight = follow(Sight("pod", START, timedelta(seconds=100)), "pod", reading, START + after)
    assert sight.look is not None
    return sight.look


def test_the_first_reading_says_nothing_yet_because_cpu_is_used_between_two():
    sight = follow(None, "pod", Reading(cpu=timedelta(seconds=5)), START)
    assert sight.look is None
    again = follow(sight, "pod", Reading(cpu=timedelta(seconds=5)), START + MINUTE)
    assert again.look == Look(START + MINUTE)


def test_cpu_counts_from_a_twentieth_of_one():
    under = second_look(Reading(cpu=timedelta(seconds=129)))
    over = second_look(Reading(cpu=timedelta(seconds=130)))
    assert under.latest is None
    assert over.latest == Sign(Source.CPU, START + 10 * MINUTE)


def test_a_server_whose_cpu_cannot_be_read_is_never_known_to_be_idle():
    look = follow(None, "pod", Reading(), START).look
    assert look is not None
    assert look.unknown == (Source.CPU,)
    assert not look.proves(START)


def test_a_container_that_began_anew_is_compared_with_itself_alone():
    before = Sight("pod", START, timedelta(hours=3))
    assert follow(before, "pod", Reading(cpu=timedelta(seconds=1)), START + MINUTE).look is None


def test_another_pod_knows_nothing_of_the_last():
    before = Sight("old", START, timedelta(0), Look(START, (Sign(Source.GPU, START),)))
    assert follow(before, "new", Reading(cpu=timedelta(0)), START + MINUTE).look is None


def test_the_latest_sign_of_each_source_is_remembered():
    quiet = Sight("pod", START - MINUTE, timedelta(0))
    sight = follow(quiet, "pod", Reading(((Source.SESSION, timedelta(0)),), timedelta(0)), START)
    sight = follow(sight, "pod", Reading(((Source.TERMINAL, MINUTE),), timedelta(0)), START + 9 * MINUTE)
    assert sight.look is not None
    assert sight.look.signs == (Sign(Source.SESSION, START), Sign(Source.TERMINAL, START + 8 * MINUTE))
    assert sight.look.proves(START + 10 * MINUTE)
    assert not sight.look.proves(START + 11 * MINUTE)


def test_who_cannot_be_looked_into_is_unknown_and_not_forgotten():
    signs = (Sign(Source.CPU, START),)
    known = Sight("pod", START, timedelta(seconds=4), Look(START, signs))
    lost = missed(missed(known, "pod", START + MINUTE), "pod", START + 2 * MINUTE)
    assert lost.look == Look(START + 2 * MINUTE, signs, tuple(sorted(Source)))
    assert (lost.misses, lost.cpu) == (2, timedelta(seconds=4))
    found = follow(lost, "pod", Reading(cpu=timedelta(seconds=4)), START + 3 * MINUTE)
    assert (found.look, found.misses) == (Look(START + 3 * MINUTE, signs), 0)


@given(age=st.timedeltas(), cpu=st.none() | st.timedeltas(min_value=timedelta(0)))
def test_whatever_a_pod_says_no_sign_lies_in_the_future(age: timedelta, cpu: timedelta | None):
    look = second_look(
        Reading(((Source.TERMINAL, age),), cpu if cpu is None else cpu + timedelta(seconds=100))
    )
    assert all(sign.active <= look.taken for sign in look.signs)
