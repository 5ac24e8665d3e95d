"""When a server is looked into, and what is told of what is seen."""

from datetime import timedelta

import pytest
from msgspec.structs import replace as changed

from neorion.devservers.decide import (
    ActivityHistory,
    ActivitySignal,
    ActivitySnapshot,
    ActivitySource,
    Observed,
    StopServer,
    decide,
    failed_probe,
    next_probe,
)
from neorion.devservers.decide.probe_schedule import PROBE_INTERVAL_MAX, PROBE_INTERVAL_MIN
from neorion.devservers.model import (
    ConditionType,
    DevServerSpec,
    DevServerStatus,
    Lifecycle,
    Phase,
    StopReason,
)
from neorion.devservers.testing import SETTINGS, a_claim, a_flavor, a_pod, a_server
from neorion.devservers.testing.builders import CREATED

MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE
USED = Lifecycle(idle_timeout=3600, warnings=("30m", "5m"))
RUNNING = DevServerStatus(phase=Phase.RUNNING, running_since=CREATED)


def seen(
    look: ActivitySnapshot | None = None, lifecycle: Lifecycle = USED, status: DevServerStatus = RUNNING
) -> Observed:
    server = a_server(DevServerSpec(flavor="cpu-small", lifecycle=lifecycle), status)
    return Observed(server, a_flavor(), a_claim(), pods=(a_pod(),), look=look)


def sight(look: ActivitySnapshot) -> ActivityHistory:
    return ActivityHistory("mydev-x", look.taken, timedelta(0), look)


def told(observed: Observed, now: timedelta, kind: ConditionType = ConditionType.IDLE):
    status = decide(observed, SETTINGS, CREATED + now).status
    return next(((one.status, one.reason) for one in status.conditions if one.type is kind), None)


def test_a_server_that_runs_is_looked_into_at_once_and_a_moment_later():
    assert next_probe(seen(), None, CREATED) == CREATED
    first = ActivityHistory("mydev-x", CREATED, timedelta(0))
    assert next_probe(seen(), first, CREATED) == CREATED + PROBE_INTERVAL_MIN
    other = ActivityHistory("mydev-old", CREATED, timedelta(0), ActivitySnapshot(CREATED))
    assert next_probe(seen(), other, CREATED) == CREATED


@pytest.mark.parametrize(
    "observed",
    [
        seen(lifecycle=Lifecycle(auto_shutdown=False)),
        seen(status=changed(RUNNING, phase=Phase.STARTING)),
        Observed(a_server(DevServerSpec(flavor="cpu-small", running=False), RUNNING), pods=(a_pod(),)),
        Observed(a_server(status=RUNNING)),
    ],
    ids=["it never stops by itself", "it starts", "it rests", "it has no pod"],
)
def test_nobody_looks_into_what_cannot_be_idle(observed: Observed):
    assert next_probe(observed, None, CREATED) is None


@pytest.mark.parametrize(
    ("taken", "next_one"),
    [(1, 11), (25, 30), (30, 40), (52, 55), (55, 60), (59.9, 60.15)],
    ids=["not too far apart", "for a warning", "after it", "for the last", "for the end", "not too near"],
)
def test_looks_come_for_each_warning_and_the_end(taken: float, next_one: float):
    look = ActivitySnapshot(CREATED + taken * MINUTE)
    assert next_probe(seen(look), sight(look), look.taken) == CREATED + next_one * MINUTE


def test_who_cannot_be_looked_into_is_tried_later_and_later():
    lost = failed_probe(None, "mydev-x", CREATED)
    waits: list[timedelta] = []
    for _ in range(10):
        found = next_probe(seen(lost.look), lost, CREATED)
        assert found is not None
        waits.append(found - lost.taken)
        lost = failed_probe(lost, "mydev-x", CREATED)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (2 * PROBE_INTERVAL_MIN, PROBE_INTERVAL_MAX)


def test_an_unused_server_is_told_to_be_idle_warned_of_and_stopped():
    now = 29 * MINUTE
    assert told(seen(ActivitySnapshot(CREATED + now)), now) == ("False", "InUse")
    assert told(seen(ActivitySnapshot(CREATED + now)), now, ConditionType.EXPIRING) == ("False", "NotSoon")
    now = 30 * MINUTE
    assert told(seen(ActivitySnapshot(CREATED + now)), now) == ("True", "Unused")
    assert told(seen(ActivitySnapshot(CREATED + now)), now, ConditionType.EXPIRING) == (
        "True",
        "DeadlineNear",
    )
    decision = decide(seen(ActivitySnapshot(CREATED + HOUR)), SETTINGS, CREATED + HOUR)
    assert decision.edit == StopServer(StopReason.IDLE)
    assert "Stopping" in [note.reason for note in decision.notes]


def test_a_stale_look_neither_warns_nor_stops_nor_wakes():
    stale = seen(ActivitySnapshot(CREATED + MINUTE))
    decision = decide(stale, SETTINGS, CREATED + HOUR)
    assert (decision.edit, decision.status.warned, decision.wake) == (None, (), None)
    assert decision.status.deadline is not None
    assert decision.status.deadline.time == CREATED + HOUR


def test_what_cannot_be_seen_is_unknown_and_stops_nothing():
    lost = failed_probe(None, "mydev-x", CREATED + HOUR).look
    assert told(seen(lost), HOUR) == ("Unknown", "NotSeen")
    assert decide(seen(lost), SETTINGS, CREATED + HOUR).edit is None


def test_a_new_operator_writes_nothing_before_it_has_looked():
    look = ActivitySnapshot(CREATED + HOUR / 2, (ActivitySignal(ActivitySource.TERMINAL, CREATED + MINUTE),))
    before = decide(seen(look), SETTINGS, CREATED + HOUR / 2).status
    after = decide(seen(status=before), SETTINGS, CREATED + HOUR / 2 + MINUTE)
    assert after.status == before


def test_use_that_an_older_operator_saw_counts_for_its_successor():
    look = ActivitySnapshot(CREATED + HOUR, (ActivitySignal(ActivitySource.SESSION, CREATED + HOUR),))
    before = decide(seen(look), SETTINGS, CREATED + HOUR).status
    decision = decide(
        seen(ActivitySnapshot(CREATED + 1.5 * HOUR), status=before), SETTINGS, CREATED + 1.5 * HOUR
    )
    assert decision.edit is None
    assert decision.status.deadline is not None
    assert decision.status.deadline.time == CREATED + 2 * HOUR


def test_a_server_in_use_is_not_written_to_at_every_look():
    status, written = RUNNING, 0
    for minute in range(0, 120, 2):
        now = CREATED + minute * MINUTE
        look = ActivitySnapshot(now, (ActivitySignal(ActivitySource.TERMINAL, now),))
        found = decide(seen(look, status=status), SETTINGS, now).status
        written += found != status
        status = found
    assert written <= 120 / 6 + 2
