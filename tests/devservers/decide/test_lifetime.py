from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.devservers.decide.idle_detection import FRESH, ActivitySignal, ActivitySnapshot, ActivitySource
from neorion.devservers.decide.lifetime import (
    LifetimeInput,
    deadline,
    due,
    next_start,
    next_warning,
    schedule_fault,
    should_start,
    warnings_due,
)
from neorion.devservers.model import Deadline, FlavorLimits, Lifecycle, Schedule, StopReason

START = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
QUIET = Lifecycle(auto_shutdown=False)


def running(
    lifecycle: Lifecycle,
    *,
    look: ActivitySnapshot | None = None,
    limits: FlavorLimits | None = None,
    told: Deadline | None = None,
) -> LifetimeInput:
    return LifetimeInput(lifecycle, START, limits or FlavorLimits(), START, look, told)


def ends(lifecycle: Lifecycle, *, look: ActivitySnapshot | None = None, limits: FlavorLimits | None = None):
    found = deadline(running(lifecycle, look=look, limits=limits))
    return (found.time, found.reason) if found else None


def test_a_server_without_limits_runs_on():
    assert ends(QUIET) is None


def test_a_time_to_live_counts_from_the_start():
    assert ends(Lifecycle(auto_shutdown=False, time_to_live="2h30m")) == (
        START + 2.5 * HOUR,
        StopReason.EXPIRED,
    )


def test_an_extension_moves_the_end_and_never_brings_it_nearer():
    later = Lifecycle(auto_shutdown=False, time_to_live="2h", extended_until=START + 5 * HOUR)
    nearer = Lifecycle(auto_shutdown=False, time_to_live="2h", extended_until=START + HOUR)
    assert ends(later) == (START + 5 * HOUR, StopReason.EXPIRED)
    assert ends(nearer) == (START + 2 * HOUR, StopReason.EXPIRED)


def test_the_flavor_caps_what_a_user_may_ask():
    limits = FlavorLimits(max_ttl="3h")
    assert ends(QUIET, limits=limits) == (START + 3 * HOUR, StopReason.EXPIRED)
    asked = Lifecycle(auto_shutdown=False, time_to_live="1d", extended_until=START + 48 * HOUR)
    assert ends(asked, limits=limits) == (START + 3 * HOUR, StopReason.EXPIRED)


def test_what_was_never_looked_at_is_not_idle():
    assert ends(Lifecycle()) is None
    assert due(running(Lifecycle()), START + 100 * HOUR) is None


def test_a_stale_look_stops_nothing_and_what_it_said_is_still_told():
    now = START + 10 * HOUR
    stale = ActivitySnapshot(taken=now - FRESH - timedelta(seconds=1))
    fresh = ActivitySnapshot(taken=now - FRESH)
    assert due(running(Lifecycle(), look=stale), now) is None
    assert ends(Lifecycle(), look=stale) == (START + HOUR, StopReason.IDLE)
    assert due(running(Lifecycle(), look=fresh), now) == Deadline(time=START + HOUR, reason=StopReason.IDLE)


def test_a_look_that_could_not_see_everything_stops_nothing():
    now = START + 10 * HOUR
    assert (
        due(running(Lifecycle(), look=ActivitySnapshot(taken=now, unknown=(ActivitySource.GPU,))), now)
        is None
    )


def test_a_stale_look_does_not_hold_off_the_deadline():
    now = START + 10 * HOUR
    server = running(Lifecycle(time_to_live="9h"), look=ActivitySnapshot(taken=START))
    assert due(server, now) == Deadline(time=START + 9 * HOUR, reason=StopReason.EXPIRED)


def test_an_idle_end_that_was_told_stays_until_somebody_looks():
    idle = Deadline(time=START + HOUR, reason=StopReason.IDLE)
    over = Deadline(time=START + HOUR, reason=StopReason.EXPIRED)
    assert deadline(running(Lifecycle(), told=idle)) == idle
    assert deadline(running(Lifecycle(), told=over)) is None
    assert deadline(running(QUIET, told=idle)) is None
    looked = running(
        Lifecycle(),
        told=idle,
        look=ActivitySnapshot(START, (ActivitySignal(ActivitySource.CPU, START + HOUR),)),
    )
    assert deadline(looked) == Deadline(time=START + 2 * HOUR, reason=StopReason.IDLE)


def test_the_latest_sign_of_use_moves_the_idle_end():
    now = START + 2 * HOUR
    look = ActivitySnapshot(
        taken=now,
        signs=(
            ActivitySignal(ActivitySource.CPU, START + HOUR),
            ActivitySignal(ActivitySource.TERMINAL, START + 1.5 * HOUR),
        ),
    )
    assert ends(Lifecycle(), look=look) == (START + 2.5 * HOUR, StopReason.IDLE)


def test_keeping_holds_off_idleness_but_not_the_deadline():
    now = START + 2 * HOUR
    kept = Lifecycle(keep_until=START + 9 * HOUR, time_to_live="10h")
    assert ends(kept, look=ActivitySnapshot(taken=now)) == (START + 9 * HOUR, StopReason.IDLE)
    short = Lifecycle(keep_until=START + 9 * HOUR, time_to_live="3h")
    assert ends(short, look=ActivitySnapshot(taken=now)) == (START + 3 * HOUR, StopReason.EXPIRED)


def test_a_schedule_speaks_the_users_time_zone():
    athens = Schedule(stop="0 18 * * MON-FRI", time_zone="Europe/Athens")
    assert ends(Lifecycle(auto_shutdown=False, schedule=athens)) == (
        datetime(2026, 11, 16, 18, tzinfo=ZoneInfo("Europe/Athens")),
        StopReason.SCHEDULE,
    )


@pytest.mark.parametrize(
    ("reason", "starts"),
    [
        (StopReason.SCHEDULE, True),
        (StopReason.IDLE, True),
        (StopReason.ASKED, False),
        (StopReason.EXPIRED, False),
    ],
)
def test_the_schedule_starts_only_what_nobody_stopped_on_purpose(reason: StopReason, *, starts: bool):
    hours = Lifecycle(schedule=Schedule(start="0 9 * * *"))
    stopped = datetime(2026, 11, 15, 20, tzinfo=UTC)
    assert not should_start(hours, stopped, reason, datetime(2026, 11, 16, 8, 59, tzinfo=UTC))
    assert should_start(hours, stopped, reason, datetime(2026, 11, 16, 9, 1, tzinfo=UTC)) is starts
    assert (next_start(hours, reason, stopped) is not None) is starts


def test_warnings_come_in_order_and_again_for_another_end():
    end = Deadline(time=START + HOUR, reason=StopReason.EXPIRED)
    plan = running(Lifecycle(warnings=("5m", "30m")))
    assert warnings_due(plan, end, START) == ()
    assert next_warning(plan, end, START) == START + HOUR / 2
    first = warnings_due(plan, end, START + HOUR / 2)
    both = warnings_due(plan, end, START + HOUR)
    assert len(first) == 1
    assert both[0] == first[0]
    assert len(both) == 2
    moved = Deadline(time=START + 2 * HOUR, reason=StopReason.EXPIRED)
    assert not set(warnings_due(plan, moved, START + 2 * HOUR)) & set(both)


def test_who_has_just_typed_is_not_warned_of_idleness():
    plan = running(Lifecycle(idle_timeout=1200, warnings=("30m", "15m", "5m")))
    end = Deadline(time=START + timedelta(seconds=1200), reason=StopReason.IDLE)
    assert warnings_due(plan, end, START + timedelta(minutes=14)) == ()
    assert len(warnings_due(plan, end, START + timedelta(minutes=15))) == 1


@pytest.mark.parametrize(
    ("schedule", "word"),
    [
        (Schedule(start="0 25 * * *"), "schedule.start"),
        (Schedule(stop="0 0 31 2 *"), "schedule.stop"),
        (Schedule(start="0 9 * * *", time_zone="Europe/Atlantis"), "Atlantis"),
        (Schedule(start="0 9 * * *", time_zone="../etc/passwd"), "time zone"),
    ],
)
def test_hours_that_cannot_be_read_are_told_in_a_sentence(schedule: Schedule, word: str):
    assert word in (schedule_fault(schedule) or "")


def test_good_hours_have_no_fault():
    assert schedule_fault(Schedule(start="0 9 * * MON-FRI", time_zone="Europe/Athens")) is None


@given(
    ttl=st.integers(1, 10_000),
    extended=st.integers(-10_000, 100_000) | st.none(),
    cap=st.integers(1, 10_000) | st.none(),
)
def test_an_expiry_never_passes_the_cap_nor_falls_below_what_was_promised(
    ttl: int, extended: int | None, cap: int | None
):
    lifecycle = Lifecycle(
        auto_shutdown=False,
        time_to_live=f"{ttl}m",
        extended_until=None if extended is None else START + timedelta(minutes=extended),
    )
    found = ends(lifecycle, limits=FlavorLimits(max_ttl=f"{cap}m") if cap else None)
    assert found
    promised = START + timedelta(minutes=ttl)
    if cap is None:
        assert found[0] >= promised
    else:
        assert min(promised, START + timedelta(minutes=cap)) <= found[0] <= START + timedelta(minutes=cap)
