"""Computes the lifecycle of a server that shall run longer or end sooner. Pure."""

from datetime import datetime, timedelta

from msgspec import Struct

from neorion.devservers.client.durations import span_text
from neorion.devservers.client.progress import is_observed
from neorion.devservers.decide import expiry
from neorion.devservers.model import FlavorLimits, StopReason
from neorion.devservers.model.field_types import span
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject
from neorion.keel.base import Conflict, QuotaExceeded


class Extension(Struct, frozen=True):
    """The server's new end, and the fields of its `lifecycle` that give it. A field that is None is taken away."""

    end: datetime
    lifecycle: dict[str, str | None]


def extended(
    server: DevServerObject,
    flavor: DevServerFlavor | None,
    by: timedelta,
    now: datetime,
    *,
    shorten: bool = False,
) -> Extension:
    """Counts from the end it has, so that it never ends sooner; with `shorten`, from now, whatever that means."""
    name, lifecycle = server.meta.name, server.spec.lifecycle
    if not server.spec.running:
        raise Conflict("devservers.not_started", f"{name} does not run.", hint=f"Run: devctl start {name}.")
    known = server.status.deadline
    reached = max(now, _end(server, flavor, now) or now)
    end = (now if shorten else reached) + by
    _within_maximum(server, flavor, end, reached, now)
    if shorten:
        # What was held off until later is held off until then: it would count on after another start.
        fields: dict[str, str | None] = {"timeToLive": None, "expirationTime": _text(end)}
        held = {"keepUntil": _text(min(end, lifecycle.keep_until))} if lifecycle.keep_until else {}
        return Extension(end, {**fields, "extendedUntil": None, **held})
    written: dict[str, str | None] = {}
    if lifecycle.time_to_live is not None or lifecycle.expiration_time is not None:
        written["extendedUntil"] = _later(end, lifecycle.extended_until)
    if known is None or known.reason is not StopReason.EXPIRED:
        # Not its deadline but idleness or its hours would stop it; those are held off.
        written["keepUntil"] = _later(end, lifecycle.keep_until)
    return Extension(end, written)


def _end(server: DevServerObject, flavor: DevServerFlavor | None, now: datetime) -> datetime | None:
    """When it would stop: as its status tells, or as it was asked for since then, which the status does not tell yet."""
    lifecycle, known = server.spec.lifecycle, server.status.deadline
    if known is None:
        return lifecycle.keep_until
    if is_observed(server):
        return known.time
    limits = (flavor.spec.limits if flavor else None) or FlavorLimits()
    ends = [expiry(lifecycle, server.status.running_since or now, limits)]
    if known.reason is not StopReason.EXPIRED:
        ends.append(max(known.time, lifecycle.keep_until or known.time))
    return min(filter(None, ends), default=None)


def _within_maximum(
    server: DevServerObject, flavor: DevServerFlavor | None, end: datetime, reached: datetime, now: datetime
) -> None:
    limits = flavor.spec.limits if flavor else None
    if flavor is None or limits is None or limits.max_ttl is None:
        return
    last = (server.status.running_since or now) + span(limits.max_ttl)
    if end <= last:
        return
    left = last - reached
    raise QuotaExceeded(
        "devservers.past_maximum",
        f"{server.meta.name} may run until {last:%Y-%m-%d %H:%M %Z}: {flavor.meta.name} allows {limits.max_ttl} at a time.",
        hint=f"devctl extend {server.meta.name} --time {span_text(left)}"
        if left >= timedelta(minutes=1)
        else f"That is when it stops already; devctl start {server.meta.name} begins a new time after that.",
    )


def _later(end: datetime, before: datetime | None) -> str:
    """An earlier extension may reach further than the end that is near now."""
    return _text(max(end, before or end))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
