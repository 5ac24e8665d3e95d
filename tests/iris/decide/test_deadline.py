"""Limits on waiting and running."""

from neorion.iris.decide import PendingDeadline, deadlines
from neorion.iris.model import AttemptId, JobId, TimeLimits
from neorion.iris.testing import NOW, ago
from neorion.keel.base import Duration

LIMITS = TimeLimits(wait=Duration.of(minutes=10), run=Duration.of(hours=1))


def waits(since: str, limits: TimeLimits = LIMITS) -> PendingDeadline:
    return PendingDeadline(JobId("job-1"), 0, limits, ago(since))


def runs(since: str, limits: TimeLimits = LIMITS) -> PendingDeadline:
    return PendingDeadline(JobId("job-2"), 0, limits, ago(since), AttemptId("attempt-1"))


def test_who_waits_is_held_to_the_wait_limit_and_who_runs_to_the_run_limit():
    assert deadlines([waits("11m"), runs("11m")], NOW).over == (waits("11m"),)
    assert deadlines([waits("9m"), runs("61m")], NOW).over == (runs("61m"),)


def test_a_limit_is_over_at_its_very_moment():
    assert deadlines([waits("10m")], NOW).over == (waits("10m"),)


def test_the_next_look_is_at_the_nearest_deadline():
    assert deadlines([waits("4m"), runs("58m"), waits("20m")], NOW).wake_at == NOW + Duration.of(minutes=2)


def test_without_limits_there_is_nothing_to_wake_for():
    found = deadlines([waits("1000h", TimeLimits()), runs("1000h", TimeLimits())], NOW)
    assert (found.over, found.wake_at) == ((), None)
