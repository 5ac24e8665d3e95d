"""Which attempts a worker may still start, and which the runtime may remove."""

from neorion.iris.model import AttemptId
from neorion.iris.ports import AttemptExit, AttemptStatus, ExitKind, Phase
from neorion.iris.worker.history import AttemptHistory

A, B, C = (AttemptId(f"attempt-{name}") for name in "abc")


def end(attempt: AttemptId) -> AttemptStatus:
    return AttemptStatus(attempt, Phase.ENDED, AttemptExit(ExitKind.EXIT))


def test_an_end_is_known_before_it_is_recorded_by_the_controller() -> None:
    history = AttemptHistory()
    history.record_end(end(A))
    assert (history.ended(A), history.settled(A), history.unsettled(A)) == (True, False, [end(A)])
    history.settle(A)
    assert (history.ended(A), history.settled(A), history.unsettled(A)) == (True, True, [])
    # A runtime that is found again reports old ends.
    history.record_end(end(A))
    assert history.settled(A)


def test_an_attempt_is_being_started_until_the_last_start_is_over() -> None:
    history = AttemptHistory()
    with history.start(A):
        with history.start(A):
            assert history.starting(A)
        assert history.starting(A)
    assert not history.starting(A)


def test_the_oldest_ends_are_dropped_first() -> None:
    history = AttemptHistory(most=2)
    for attempt in (A, B, C):
        history.record_end(end(attempt))
    assert [history.ended(attempt) for attempt in (A, B, C)] == [False, True, True]
