"""When a server stops and starts by itself, and who is to be warned before."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from neorion.devservers.decide.evidence import Look, idle_since
from neorion.devservers.model import Deadline, FlavorLimits, Lifecycle, Schedule, StopReason
from neorion.devservers.model.words import span

# Whether a cron text can be read does not depend on when it is read.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Running:
    """What decides about the end of a server that runs."""

    lifecycle: Lifecycle
    since: datetime
    limits: FlavorLimits
    look: Look | None = None


def deadline(server: Running, now: datetime) -> Deadline | None:
    """The first of the ends that are in sight; one that lies in the past is due."""
    ends = [
        (expiry(server.lifecycle, server.since, server.limits), StopReason.EXPIRED),
        (_idle_end(server, now), StopReason.IDLE),
        (_scheduled_stop(server), StopReason.SCHEDULE),
    ]
    known = [Deadline(time=time, reason=reason) for time, reason in ends if time is not None]
    return min(known, key=lambda end: end.time, default=None)


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


def warnings_due(lifecycle: Lifecycle, end: Deadline | None, now: datetime) -> tuple[str, ...]:
    """The warnings whose time has come, each marked by the end it belongs to, so that another end warns anew."""
    if end is None:
        return ()
    return tuple(
        f"{end.time.isoformat()}-{before}"
        for before in _by_length(lifecycle)
        if now >= end.time - span(before)
    )


def next_warning(lifecycle: Lifecycle, end: Deadline | None, now: datetime) -> datetime | None:
    if end is None:
        return None
    times = (end.time - span(before) for before in lifecycle.warnings)
    return min((time for time in times if time > now), default=None)


def should_start(lifecycle: Lifecycle, stopped_at: datetime, reason: StopReason, now: datetime) -> bool:
    """The schedule starts again what it or idleness stopped; never what a person stopped or what expired."""
    schedule = lifecycle.schedule
    if schedule is None or schedule.start is None or reason not in {StopReason.SCHEDULE, StopReason.IDLE}:
        return False
    return stopped_at < _last(schedule.start, schedule, now)


def next_start(lifecycle: Lifecycle, reason: StopReason, now: datetime) -> datetime | None:
    schedule = lifecycle.schedule
    if schedule is None or schedule.start is None or reason not in {StopReason.SCHEDULE, StopReason.IDLE}:
        return None
    return _next(schedule.start, schedule, now)


def schedule_fault(schedule: Schedule) -> str | None:
    """What is wrong with hours the API server could not read, as one sentence; None when nothing is."""
    try:
        ZoneInfo(schedule.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return f'"{schedule.time_zone}" is no time zone; write one such as Europe/Athens.'
    for name, cron in (("start", schedule.start), ("stop", schedule.stop)):
        try:
            if cron is not None:
                next(CronSim(cron, _ANY_TIME))
        except (CronSimError, StopIteration):
            return (
                f'schedule.{name} "{cron}" is no time in cron\'s form; write one such as "0 9 * * MON-FRI".'
            )
    return None


def _idle_end(server: Running, now: datetime) -> datetime | None:
    if not server.lifecycle.auto_shutdown:
        return None
    since = idle_since(server.look, server.since, now)
    if since is None:
        return None
    allowed = timedelta(seconds=server.lifecycle.idle_timeout)
    if server.limits.max_idle is not None:
        allowed = min(allowed, span(server.limits.max_idle))
    return _kept(server.lifecycle, since + allowed)


def _scheduled_stop(server: Running) -> datetime | None:
    schedule = server.lifecycle.schedule
    if schedule is None or schedule.stop is None:
        return None
    return _kept(server.lifecycle, _next(schedule.stop, schedule, server.since))


def _kept(lifecycle: Lifecycle, end: datetime) -> datetime:
    """`keepUntil` holds off what nobody asked for: idleness and the schedule, not the deadline."""
    return end if lifecycle.keep_until is None else max(end, lifecycle.keep_until)


def _by_length(lifecycle: Lifecycle) -> list[str]:
    return sorted(lifecycle.warnings, key=span, reverse=True)


def _next(cron: str, schedule: Schedule, after: datetime) -> datetime:
    return next(CronSim(cron, after.astimezone(ZoneInfo(schedule.time_zone))))


def _last(cron: str, schedule: Schedule, before: datetime) -> datetime:
    return next(CronSim(cron, before.astimezone(ZoneInfo(schedule.time_zone)), reverse=True))
