"""Why a server is as it is, what would help, and what will end it: sentences for people. Pure."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from neorion.devservers.client.durations import span_text
from neorion.devservers.client.progress import condition_of, is_observed, obstacle
from neorion.devservers.model import ConditionType, FlavorLimits, Phase, StopReason
from neorion.devservers.model.field_types import span
from neorion.devservers.model.kube_types import DevServerFlavor, DevServerObject

if TYPE_CHECKING:
    from neorion.keel.kube.core import ContainerStatus

STOPPED = {
    StopReason.ASKED: "a user stopped it",
    StopReason.EXPIRED: "its time was over",
    StopReason.IDLE: "it was idle",
    StopReason.SCHEDULE: "its hours had ended",
    StopReason.PREEMPTED: "its quota was taken away",
    StopReason.INTERRUPTED: "its spot machine was taken back",
}
STOPS = {
    StopReason.ASKED: "a user asked",
    StopReason.EXPIRED: "its time is over then",
    StopReason.IDLE: "it is idle",
    StopReason.SCHEDULE: "its hours end",
    StopReason.PREEMPTED: "its quota was taken away",
    StopReason.INTERRUPTED: "its spot machine was taken back",
}
_CURES = {
    "FlavorNotFound": "devctl update {name} --flavor FLAVOR, with one that devctl flavors lists.",
    "BadSchedule": "Correct spec.lifecycle.schedule of the DevServer.",
    "QuotaExceeded": "Delete or stop another server, or ask for more; then devctl stop {name} and devctl start {name}.",
    "ExceedsQuota": "Delete it, and create it with fewer machines or a smaller flavor; or ask for more quota.",
    "Refused": "Ask an administrator of the cluster.",
    "NoStorageClass": "Let an administrator make a class the default; or delete the server, and name one in spec.home.storageClass.",
    "Lost": "Ask the administrator of the cluster's storage.",
    "Unschedulable": "Take a smaller flavor (devctl update {name} --flavor FLAVOR), or wait for a node.",
    "ClaimMissing": "Make that claim; or delete the server, and create it with another --shared-volume: its home stays.",
    "ErrImagePull": "Check the name of the image and the right to pull it.",
    "ImagePullBackOff": "Check the name of the image and the right to pull it.",
    "InvalidImageName": "Delete it, and create it with another --image; its home stays.",
    "CrashLoopBackOff": "devctl logs {name} --previous shows its last words.",
    "Ended": "Wait a moment; devctl logs {name} --previous shows its last words.",
    "NoAnswer": "devctl logs {name} says why; devctl exec {name} -- COMMAND works without it.",
    "NodeSilent": "Wait for the node; or, if it is gone for good, devctl delete {name} and create it again: its home stays.",
    "Evicted": "devctl stop {name}, then devctl start {name}.",
}
_STEPS = (ConditionType.FLAVOR, ConditionType.VOLUME, ConditionType.SCHEDULED, ConditionType.IMAGE)


class Diagnosis(Struct, frozen=True):
    """One sentence, and what to do about it. `well` when nothing is wrong."""

    well: bool
    sentence: str
    hint: str = ""


def diagnose(server: DevServerObject, warning: str = "") -> Diagnosis:
    """`warning` is the newest complaint among the events of its objects; it counts where the status names nothing."""
    name = server.meta.name
    if server.meta.deleted is not None:
        return Diagnosis(False, f"{name} is being deleted.", "Its home stays for its retention.")
    if not is_observed(server):
        return Diagnosis(
            False,
            f"No operator has looked at {name} since it was last changed.",
            "Ask an administrator whether the operator runs.",
        )
    return _at_work(server, warning) if server.spec.running else _at_rest(server)


def diagnose_stopped(name: str, container: "ContainerStatus") -> Diagnosis | None:
    """Diagnosis of a server whose container does not run; None if it runs."""
    if container.state.running is not None:
        return None
    ended = container.state.terminated or container.last_state.terminated
    if ended is None:
        return Diagnosis(False, f"{name} does not run yet.", f"devctl doctor {name}")
    how = "ran out of memory" if ended.reason == "OOMKilled" else f"ended with exit code {ended.exit_code}"
    return Diagnosis(
        False,
        f"{name} does not run at the moment: it {how}, and is started again from time to time.",
        f"devctl logs {name} shows its last words, devctl doctor {name} what is in its way.",
    )


def stop_conditions(
    server: DevServerObject, flavor: DevServerFlavor | None, now: datetime
) -> tuple[str, ...]:
    """Everything that would stop the server, the nearest first where that is known."""
    from neorion.devservers.decide import expiry  # noqa: PLC0415 -- it brings cron and time zones along

    if not server.spec.running:
        return _after_rest(server, now)
    lifecycle, status = server.spec.lifecycle, server.status
    limits = (flavor.spec.limits if flavor else None) or FlavorLimits()
    told: list[str] = []
    if status.deadline is not None:
        told.append(f"{_when(status.deadline.time, now)}: {STOPS[status.deadline.reason]}.")
    last = expiry(lifecycle, status.running_since or now, limits)
    if last is not None and (status.deadline is None or status.deadline.reason is not StopReason.EXPIRED):
        told.append(f"{_when(last, now)}: {STOPS[StopReason.EXPIRED]}.")
    if lifecycle.auto_shutdown:
        told.append(f"After {_idle_text(server, limits)} without use{_unseen(server)}.")
    if lifecycle.schedule is not None and lifecycle.schedule.stop is not None:
        told.append(f'At its hours: "{lifecycle.schedule.stop}" in {lifecycle.schedule.time_zone}.')
    return tuple(told) or ("Nothing stops it by itself.",)


def _at_work(server: DevServerObject, warning: str) -> Diagnosis:
    name = server.meta.name
    found = obstacle(server)
    if server.status.ready:
        # As where another flavor is asked for than it can get: it runs, and not as its user wants.
        return (
            Diagnosis(False, f"{name} runs. {found}", _hint(server))
            if found
            else Diagnosis(True, f"{name} runs.")
        )
    if found:
        return Diagnosis(False, found, _hint(server))
    hint = f"devctl events {name}"
    return Diagnosis(False, warning or f"{name} is on its way: {_next_step(server)}.", hint)


def _at_rest(server: DevServerObject) -> Diagnosis:
    name, status = server.meta.name, server.status
    if status.phase is Phase.STOPPING:
        if status.message:
            return Diagnosis(False, f"{name} is stopping. {status.message}", _hint(server))
        return Diagnosis(False, f"{name} is stopping.", f"devctl start {name}, once it has stopped.")
    why = STOPPED[status.stop_reason or StopReason.ASKED]
    return Diagnosis(False, f"{name} is stopped: {why}.", f"devctl start {name}")


def _after_rest(server: DevServerObject, now: datetime) -> tuple[str, ...]:
    gone = server.status.delete_after
    if gone is None:
        return ("It is stopped, and stays as it is.",)
    return (f"It is stopped. {_when(gone, now)}: the server is deleted; its home is kept for its retention.",)


def _hint(server: DevServerObject) -> str:
    for told in (
        condition_of(server, kind)
        for kind in (*_STEPS, ConditionType.QUOTA, ConditionType.READY, ConditionType.SSH)
    ):
        if told is not None and told.status == "False" and told.reason in _CURES:
            return _CURES[told.reason].format(name=server.meta.name)
    standing = server.status.flavor.applied if server.status.flavor else server.spec.flavor
    if server.status.ready and standing != server.spec.flavor:
        return revert_hint(server.meta.name, standing)
    return f"devctl events {server.meta.name}"


def revert_hint(name: str, standing: str) -> str:
    """Hint for a server that does not get its new flavor."""
    return f"It moves once that is mended; to take the wish back: devctl update {name} --flavor {standing}"


def _next_step(server: DevServerObject) -> str:
    words = {
        ConditionType.FLAVOR: "the operator looks at it",
        ConditionType.VOLUME: "its volume is being made",
        ConditionType.SCHEDULED: "a node is being found",
        ConditionType.IMAGE: "its image is being pulled",
    }
    for kind in _STEPS:
        told = condition_of(server, kind)
        # A volume may wait for its pod; then the pod is what everything waits for.
        if (told is None or told.status != "True") and not (
            told is not None and told.reason == "Waiting" and kind is ConditionType.VOLUME
        ):
            return words[kind]
    return "it starts"


def _unseen(server: DevServerObject) -> str:
    idle = condition_of(server, ConditionType.IDLE)
    return ", which cannot be seen at the moment" if idle is not None and idle.reason == "NotSeen" else ""


def _idle_text(server: DevServerObject, limits: FlavorLimits) -> str:
    allowed = timedelta(seconds=server.spec.lifecycle.idle_timeout)
    return span_text(min(allowed, span(limits.max_idle)) if limits.max_idle else allowed)


def _when(moment: datetime, now: datetime) -> str:
    left = moment - now
    if left < timedelta(minutes=1):
        return "Now"
    minutes = timedelta(minutes=left // timedelta(minutes=1))
    return f"At {moment:%Y-%m-%d %H:%M %Z}, in {span_text(minutes)}"
