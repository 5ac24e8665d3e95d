"""Notifications of a server's use and end: in its status, in Events, and to people."""

from datetime import datetime, timedelta

from neorion.devservers.decide.decision import Observed
from neorion.devservers.decide.idle_detection import ActivitySource
from neorion.devservers.decide.lifetime import LifetimeInput, deadline, warnings_due
from neorion.devservers.decide.progress import ConditionStep
from neorion.devservers.model import Activity, Alert, ConditionType, Deadline, DevServerStatus, StopReason

# Activity is told to this precision, so that a server in use is not written to at every look.
ACTIVITY_STEP = timedelta(minutes=5)

WHY = {
    StopReason.EXPIRED: "its time is over",
    StopReason.IDLE: "it is idle",
    StopReason.SCHEDULE: "its hours end",
    StopReason.ASKED: "a user asked",
    StopReason.PREEMPTED: "its quota was taken away",
    StopReason.INTERRUPTED: "its spot machine was taken back",
}


def settled(server: LifetimeInput) -> Deadline | None:
    """An end that use moves is told in steps, like the use itself."""
    end, before = deadline(server), server.told
    if end is None or before is None or end.reason is not before.reason or end.reason is not StopReason.IDLE:
        return end
    return before if timedelta(0) <= end.time - before.time < _step(server) else end


def _step(server: LifetimeInput) -> timedelta:
    return min(ACTIVITY_STEP, server.idle_allowed / 4)


def activity(seen: Observed, server: LifetimeInput) -> Activity | None:
    """Moves in steps: what was told stays until it is off by a whole step."""
    latest = seen.look.latest if seen.look else None
    before = seen.server.status.activity
    if latest is None or (before is not None and latest.active - before.last_time < _step(server)):
        return before
    return Activity(last_time=latest.active, source=latest.source.value)


def warned(seen: Observed, server: LifetimeInput, end: Deadline | None, now: datetime) -> tuple[str, ...]:
    """Warnings that are due. Idle warnings need a recent probe, because the user may be active again."""
    found = warnings_due(server, end, now)
    proven = seen.look is not None and seen.look.proves_idle(now)
    if end is None or end.reason is not StopReason.IDLE or proven:
        return found
    return tuple(one for one in found if one in seen.server.status.warned)


def idle_steps(seen: Observed, server: LifetimeInput) -> tuple[ConditionStep, ...]:
    """Condition Idle. The last one stays until this operator has probed the server itself."""
    kind = ConditionType.IDLE
    if not server.lifecycle.auto_shutdown or seen.pod is None:
        return ()
    if seen.look is None:
        told = next((one for one in seen.server.status.conditions if one.type is kind), None)
        known = {"True": True, "False": False}.get(told.status) if told else None
        return (
            ConditionStep(kind, known, told.reason if told else "NotLookedAt", told.message if told else ""),
        )
    if seen.look.unknown:
        hidden = "nothing" if len(seen.look.unknown) == len(ActivitySource) else "not everything"
        return (ConditionStep(kind, None, "NotSeen", f"Of what would show its use {hidden} can be seen."),)
    if seen.look.taken - server.last_use < server.idle_allowed / 2:
        return (ConditionStep(kind, False, "InUse"),)
    since = f"The server has not been used since {server.last_use:%Y-%m-%d %H:%M %Z}."
    return (ConditionStep(kind, True, "Unused", since),)


def expiring_step(marks: tuple[str, ...], end: Deadline | None) -> ConditionStep:
    soon = bool(marks) and end is not None
    why = f"The server stops at {_clock(end)}: {WHY[end.reason]}." if soon and end else ""
    return ConditionStep(ConditionType.EXPIRING, soon, "DeadlineNear" if soon else "NotSoon", why)


def alert_of(seen: Observed, status: DevServerStatus) -> Alert | None:
    """Several warnings whose time has come together are one."""
    end = status.deadline
    if end is None or not set(status.warned) - set(seen.server.status.warned):
        return None
    server = seen.identity
    extend = f"devctl extend {server.name} --time 1h keeps it"
    text = f"The server {server.name} stops at {_clock(end)}: {WHY[end.reason]}; {extend}."
    return Alert(server.name, server.namespace, seen.server.spec.owner or "", end.time, end.reason, text)


def _clock(end: Deadline | None) -> str:
    return end.time.strftime("%Y-%m-%d %H:%M %Z") if end else "no time"
