from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neorion.devservers.client import Extension, extended
from neorion.devservers.decide import expiry
from neorion.devservers.model import (
    Deadline,
    DevServerSpec,
    DevServerStatus,
    FlavorLimits,
    Lifecycle,
    StopReason,
)
from neorion.devservers.model.kube_types import DevServerObject
from neorion.devservers.testing import FLAVOR, a_flavor, a_server
from neorion.devservers.testing.builders import CREATED
from neorion.keel.base import Conflict, QuotaExceeded

HOUR = timedelta(hours=1)
NOW = CREATED + HOUR
CAPPED = a_flavor(replace(FLAVOR, limits=FlavorLimits(max_ttl="4h")))


def running(
    lifecycle: Lifecycle, end: datetime | None, reason: StopReason = StopReason.EXPIRED
) -> DevServerObject:
    deadline = Deadline(time=end, reason=reason) if end else None
    status = DevServerStatus(running_since=CREATED, deadline=deadline)
    return a_server(DevServerSpec(flavor="cpu-small", lifecycle=lifecycle), status)


def written(lifecycle: Lifecycle, extension: Extension) -> Lifecycle:
    """The lifecycle after the patch, as the API server would read it."""
    names = {
        "extendedUntil": "extended_until",
        "keepUntil": "keep_until",
        "expirationTime": "expiration_time",
        "timeToLive": "time_to_live",
    }
    fields = {names[name]: text for name, text in extension.lifecycle.items()}
    times = {name: datetime.fromisoformat(text) if text else None for name, text in fields.items()}
    return replace(lifecycle, **times)


@given(ttl=st.integers(1, 100), passed=st.integers(0, 200), by=st.integers(1, 100))
def test_an_extension_never_ends_a_server_sooner_and_always_gives_the_time_asked_for(
    ttl: int, passed: int, by: int
):
    lifecycle = Lifecycle(time_to_live=f"{ttl}m")
    end, now = CREATED + timedelta(minutes=ttl), CREATED + timedelta(minutes=passed)
    found = extended(running(lifecycle, end), a_flavor(), timedelta(minutes=by), now)
    after = expiry(written(lifecycle, found), CREATED, FlavorLimits())
    assert after is not None
    assert after == found.end
    assert after >= end
    assert after >= now + timedelta(minutes=by)


@given(ttl=st.integers(1, 100), by=st.integers(1, 100))
def test_shortening_counts_from_now_whatever_end_there_was(ttl: int, by: int):
    lifecycle = Lifecycle(time_to_live=f"{ttl}m", extended_until=CREATED + 9 * HOUR)
    found = extended(
        running(lifecycle, CREATED + 9 * HOUR), a_flavor(), timedelta(minutes=by), CREATED, shorten=True
    )
    assert found.end == CREATED + timedelta(minutes=by)
    assert expiry(written(lifecycle, found), CREATED, FlavorLimits()) == found.end


@pytest.mark.parametrize("kept", [HOUR / 2, 9 * HOUR])
def test_shortening_holds_idleness_off_no_longer_than_until_the_new_end(kept: timedelta):
    """Who kept a server for a month and then ends it today has not asked that it never be idle when next started."""
    lifecycle = Lifecycle(keep_until=NOW + kept)
    found = extended(running(lifecycle, NOW + kept), a_flavor(), HOUR, NOW, shorten=True)
    assert written(lifecycle, found).keep_until == NOW + min(kept, HOUR)


@pytest.mark.parametrize("reason", [StopReason.IDLE, StopReason.SCHEDULE])
def test_what_would_stop_it_before_its_deadline_is_held_off(reason: StopReason):
    found = extended(running(Lifecycle(), NOW + HOUR, reason), a_flavor(), HOUR, NOW)
    assert found.end == NOW + 2 * HOUR
    assert found.lifecycle == {"keepUntil": "2026-11-16T11:00:00Z"}


def test_what_holds_idleness_off_leaves_a_later_deadline_where_it_is():
    lifecycle = Lifecycle(time_to_live="2h", extended_until=NOW + 7 * HOUR)
    found = extended(running(lifecycle, NOW + HOUR, StopReason.IDLE), a_flavor(), HOUR, NOW)
    after = written(lifecycle, found)
    assert after.keep_until == NOW + 2 * HOUR
    assert expiry(after, CREATED, FlavorLimits()) == NOW + 7 * HOUR


def test_without_an_end_in_sight_it_is_kept_from_now():
    found = extended(running(Lifecycle(), None), a_flavor(), HOUR, NOW)
    assert found == Extension(NOW + HOUR, {"keepUntil": "2026-11-16T10:00:00Z"})


def test_the_flavors_maximum_is_told_and_what_is_still_possible():
    server = running(Lifecycle(time_to_live="2h"), CREATED + 2 * HOUR)
    with pytest.raises(QuotaExceeded) as refused:
        extended(server, CAPPED, 3 * HOUR, NOW)
    assert (
        refused.value.sentence == "mydev may run until 2026-11-16 12:00 UTC: cpu-small allows 4h at a time."
    )
    assert refused.value.hint == "devctl extend mydev --time 2h"
    assert extended(server, CAPPED, 2 * HOUR, NOW).end == CREATED + 4 * HOUR


def test_a_server_at_its_maximum_is_not_told_to_extend_by_nothing():
    with pytest.raises(QuotaExceeded) as refused:
        extended(running(Lifecycle(), CREATED + 4 * HOUR), CAPPED, HOUR, NOW)
    assert "begins a new time" in refused.value.hint


def test_a_server_that_does_not_run_has_nothing_to_extend():
    with pytest.raises(Conflict) as refused:
        extended(a_server(DevServerSpec(flavor="cpu-small", running=False)), a_flavor(), HOUR, NOW)
    assert (refused.value.code, refused.value.hint) == ("devservers.not_started", "Run: devctl start mydev.")


@pytest.mark.parametrize(
    ("lifecycle", "reason"),
    [
        (Lifecycle(time_to_live="2h"), StopReason.EXPIRED),
        (Lifecycle(expiration_time=NOW + HOUR), StopReason.EXPIRED),
        (Lifecycle(time_to_live="8h"), StopReason.IDLE),
        (Lifecycle(), StopReason.SCHEDULE),
    ],
    ids=["time to live", "expiration", "idle", "hours"],
)
def test_an_extension_counts_from_the_one_before_whether_the_status_tells_of_it_or_not(
    lifecycle: Lifecycle, reason: StopReason
):
    server = running(lifecycle, NOW + HOUR, reason)
    first = extended(server, a_flavor(), HOUR, NOW)
    server = replace(server, spec=replace(server.spec, lifecycle=written(lifecycle, first)))
    assert extended(server, a_flavor(), HOUR, NOW).end == first.end + HOUR == NOW + 3 * HOUR


def test_an_extension_without_an_end_in_sight_counts_from_the_one_before():
    first = extended(running(Lifecycle(), None), a_flavor(), HOUR, NOW)
    after = written(Lifecycle(), first)
    assert extended(running(after, None), a_flavor(), HOUR, NOW).end == first.end + HOUR


def test_an_extension_counts_from_an_end_that_was_just_brought_nearer():
    lifecycle = Lifecycle(time_to_live="8h")
    nearer = extended(running(lifecycle, CREATED + 8 * HOUR), a_flavor(), HOUR, NOW, shorten=True)
    server = running(written(lifecycle, nearer), CREATED + 8 * HOUR)
    assert extended(server, a_flavor(), HOUR, NOW).end == NOW + 2 * HOUR
