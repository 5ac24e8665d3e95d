"""When a server stops and starts by itself, and who is to be warned before."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from msgspec.structs import replace

from neorion.devservers.decide.idle_detection import ActivitySnapshot
from neorion.devservers.model import Deadline, FlavorLimits, Lifecycle, Schedule, StopReason
from neorion.devservers.model.field_types import span

# Whether a cron text can be read does not depend on when it is read.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LifetimeInput:
    """Input of decisions about a running server's end.

    `used` is its last use before the probe `look`: the time at which it became usable, or that in its status.
    `told` is the end in its status, which holds until a newer probe.
    """

    lifecycle: Lifecycle
    since: datetime
    limits: FlavorLimits
    used: datetime
    look: ActivitySnapshot | None = None
    told: Deadline | None = None

    @property
    def idle_allowed(self) -> timedelta:
        allowed = timedelta(seconds=self.lifecycle.idle_timeout)
        return allowed if self.limits.max_idle is None else min(allowed, span(self.limits.max_idle))

    @property
    def last_use(self) -> datetime:
        latest = self.look.latest if self.look else None
        return max(self.used, latest.active) if latest else self.used


def deadline(server: LifetimeInput) -> Deadline | None:
    """The first of the ends that are in sight."""
    return _first((_expiry_of(server), idle_end(server), _scheduled_stop(server)))


def due(server: LifetimeInput, now: datetime) -> Deadline | None:
    """The end that has come. Idleness has to be proven at that moment."""
    proven = server.look is not None and server.look.proves_idle(now)
    ends = (_expiry_of(server), idle_end(server) if proven else None, _scheduled_stop(server))
    found = _first(ends)
    return found if found is not None and found.time <= now else None


def next_end(server: LifetimeInput) -> datetime | None:
    """The first end that comes with time alone."""
    found = _first((_expiry_of(server), _scheduled_stop(server)))
    return found.time if found else None


def idle_end(server: LifetimeInput) -> Deadline | None:
    """Counts from the last use that is known; a look may move it, and nothing else does."""
    if not server.lifecycle.auto_shutdown:
        return None
    if server.look is None or server.look.unknown:
        return server.told if server.told is not None and server.told.reason is StopReason.IDLE else None
    end = _kept(server.lifecycle, server.last_use + server.idle_allowed)
    return Deadline(time=end, reason=StopReason.IDLE)


def expiry(lifecycle: Lifecycle, since: datetime, limits: FlavorLimits) -> datetime | None:
    """A time to live counts from each start; an extension moves the end it gave; the flavor's limit caps both."""
    end = lifecycle.expiration_time
    if lifecycle.time_to_live is not None:
        end = since + span(lifecycle.time_to_live)
    if end is not None and lifecycle.extended_until is not None:
        end = max(end, lifecycle.extended_until)
    if limits.max_ttl is None:
        return end
    cap = since + span(limits.max_ttl)
    return cap if end is None else min(end, cap)


def strictest(limits: Iterable[FlavorLimits]) -> FlavorLimits:
    """The least of each of several flavors' times."""
    given = tuple(limits)
    return FlavorLimits(
        max_ttl=_least(one.max_ttl for one in given), max_idle=_least(one.max_idle for one in given)
    )


def warnings(server: LifetimeInput, end: Deadline | None) -> tuple[str, ...]:
    """Times before the end at which to warn, the longest first. Idle warnings may not reach a user who was just active."""
    if end is None:
        return ()
    asked = sorted(server.lifecycle.warnings, key=span, reverse=True)
    if end.reason is not StopReason.IDLE:
        return tuple(asked)
    return tuple(before for before in asked if span(before) <= server.idle_allowed / 2)


def warnings_due(server: LifetimeInput, end: Deadline | None, now: datetime) -> tuple[str, ...]:
    """Warnings that are due, each with the end it belongs to, so that a new end has warnings of its own."""
    return tuple(
        f"{end.time.isoformat()}-{before}"
        for before in warnings(server, end)
        if end is not None and now >= end.time - span(before)
    )


def next_warning(server: LifetimeInput, end: Deadline | None, now: datetime) -> datetime | None:
    times = (end.time - span(before) for before in warnings(server, end) if end is not None)
    return min((time for time in times if time > now), default=None)


def should_start(lifecycle: Lifecycle, stopped_at: datetime, reason: StopReason, now: datetime) -> bool:
    """The schedule starts again what it or idleness stopped; never what a person stopped or what expired."""
    schedule = lifecycle.schedule
    if schedule is None or schedule.start is None or reason not in {StopReason.SCHEDULE, StopReason.IDLE}:
        return False
    # Cron's last time lies before the moment it is asked for, and at the very second of the start that is the day before.
    return stopped_at < _last(schedule.start, schedule, now + timedelta(seconds=1))


def next_start(lifecycle: Lifecycle, reason: StopReason, now: datetime) -> datetime | None:
    schedule = lifecycle.schedule
    if schedule is None or schedule.start is None or reason not in {StopReason.SCHEDULE, StopReason.IDLE}:
        return None
    return _next(schedule.start, schedule, now)


def readable(lifecycle: Lifecycle) -> Lifecycle:
    """Without hours that cannot be read: all its other ends still count."""
    return lifecycle if schedule_fault(lifecycle.schedule) is None else replace(lifecycle, schedule=None)


def schedule_fault(schedule: Schedule | None) -> str | None:
    """Describes the fault of a schedule that the API server cannot check; None if there is none."""
    if schedule is None:
        return None
    try:
        ZoneInfo(schedule.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return f'"{schedule.time_zone}" is not a valid time zone; write one such as Europe/Athens.'
    for name, cron in (("start", schedule.start), ("stop", schedule.stop)):
        try:
            if cron is not None:
                next(CronSim(cron, _ANY_TIME))
        except (CronSimError, StopIteration):
            return (
                f'schedule.{name} "{cron}" is no time in cron\'s form; write one such as "0 9 * * MON-FRI".'
            )
    return None


def _expiry_of(server: LifetimeInput) -> Deadline | None:
    time = expiry(server.lifecycle, server.since, server.limits)
    return Deadline(time=time, reason=StopReason.EXPIRED) if time else None


def _scheduled_stop(server: LifetimeInput) -> Deadline | None:
    schedule = server.lifecycle.schedule
    if schedule is None or schedule.stop is None:
        return None
    time = _kept(server.lifecycle, _next(schedule.stop, schedule, server.since))
    return Deadline(time=time, reason=StopReason.SCHEDULE)


def _least(spans: Iterable[str | None]) -> str | None:
    return min((one for one in spans if one is not None), key=span, default=None)


def _first(ends: tuple[Deadline | None, ...]) -> Deadline | None:
    return min((end for end in ends if end is not None), key=lambda end: end.time, default=None)


def _kept(lifecycle: Lifecycle, end: datetime) -> datetime:
    """Delays automatic stops by idleness and schedule until `keepUntil`. It does not delay the deadline."""
    return end if lifecycle.keep_until is None else max(end, lifecycle.keep_until)


def _next(cron: str, schedule: Schedule, after: datetime) -> datetime:
    return next(CronSim(cron, after.astimezone(ZoneInfo(schedule.time_zone))))


def _last(cron: str, schedule: Schedule, before: datetime) -> datetime:
    return next(CronSim(cron, before.astimezone(ZoneInfo(schedule.time_zone)), reverse=True))
