"""Quota of Kueue: a server asks for all its machines by one Workload, and has no Pods before that is admitted.

All ranks of a distributed server are admitted or none. A server that loses its quota stops and keeps its home.
"""

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from neorion.devservers.decide.manifests import Manifest, OwnerIdentity, owned, resources_of, toleration
from neorion.devservers.decide.progress import ConditionStep
from neorion.devservers.decide.resize import ResizeMode
from neorion.devservers.model import (
    ConditionType,
    DevServerFlavorSpec,
    DevServerSpec,
    QueueStatus,
    Toleration,
)
from neorion.devservers.model.kueue import (
    EXCEEDS_QUOTA,
    GROUP,
    JOB_UID_LABEL,
    PODS_READY,
    VERSION,
    Workload,
)
from neorion.keel.kube import Condition, condition

if TYPE_CHECKING:
    from neorion.devservers.decide.decision import Observed

# A place in a queue changes without an event for those behind. Those far behind look less often.
_RECHECK_LEAST, _RECHECK_MOST = timedelta(seconds=10), timedelta(minutes=2)
# Those behind are not told who holds the quota: that changes more often than their place does.
HOLDERS_UP_TO_PLACE: Final = 10
# Kueue names this for each node flavor that could not fit the request even if it were empty, and the other one else.
_NEVER_FITS, _FITS_LATER = "maximum capacity", "insufficient unused quota"
_PREEMPTOR: Final = re.compile(r"UID: ([0-9a-f]{8}-[0-9a-f-]{27})")
_UNTRIED: Final = Condition("QuotaReserved", "False", "Pending", "quota is not free yet")


@dataclass(frozen=True, slots=True)
class AssignedNodes:
    """Nodes that Kueue chose for a server."""

    labels: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """All that Kueue has of one server.

    `workload` is the one for the machines that the server needs now; `others` are for earlier ones. `preemptor` is the
    server or job for which it lost its quota.
    """

    queue: str
    workload: Workload | None = None
    others: tuple[Workload, ...] = ()
    cluster_queue: str = ""
    nodes: AssignedNodes = AssignedNodes()
    place: int = 0
    waiting: int = 0
    preemptor: str = ""
    holders: tuple[str, ...] = ()

    @property
    def earlier(self) -> Workload | None:
        """The request for other machines that still holds its quota."""
        return next((one for one in self.others if has_quota(one) and one.meta.deleted is None), None)


def queue_name(spec: DevServerSpec, flavor: DevServerFlavorSpec | None) -> str | None:
    """Queue whose quota the server counts against."""
    if spec.queue is not None:
        return spec.queue.name
    return flavor.queue if flavor is not None else None


def workload_manifest(server: OwnerIdentity, spec: DevServerSpec, flavor: DevServerFlavorSpec) -> Manifest:
    """Request for the machines of a server. It cannot be changed, so other machines have a request of another name."""
    pod: Manifest = {"containers": [{"name": "dev", "image": "none", "resources": resources_of(flavor)}]}
    if flavor.node_selector:
        pod["nodeSelector"] = dict(flavor.node_selector)
    if flavor.tolerations:
        pod["tolerations"] = [toleration(one) for one in flavor.tolerations]
    pod["restartPolicy"] = "Always"
    nodes = spec.distributed.nodes if spec.distributed is not None else 1
    asked: dict[str, Any] = {
        "queueName": queue_name(spec, flavor),
        "podSets": [{"name": "main", "count": nodes, "template": {"spec": pod}}],
    }
    if spec.queue is not None and spec.queue.priority_class is not None:
        asked["priorityClassRef"] = {
            "group": GROUP,
            "kind": "WorkloadPriorityClass",
            "name": spec.queue.priority_class,
        }
    shape = sha256(json.dumps([asked, server.uid], sort_keys=True).encode()).hexdigest()[:8]
    name = f"devserver-{server.name}-{shape}"
    body = owned(server, f"{GROUP}/{VERSION}", "Workload", name, {"spec": asked})
    body["metadata"]["labels"][JOB_UID_LABEL] = server.uid
    return body


def on_assigned_nodes(flavor: DevServerFlavorSpec, entry: QueueEntry | None) -> DevServerFlavorSpec:
    """The flavor on the nodes that Kueue chose."""
    if entry is None or entry.nodes == AssignedNodes():
        return flavor
    return replace(
        flavor,
        node_selector=flavor.node_selector | dict(entry.nodes.labels),
        tolerations=(*flavor.tolerations, *entry.nodes.tolerations),
    )


def is_admitted(entry: QueueEntry | None) -> bool:
    """Return whether the server may have Pods. Without Kueue it may."""
    return entry is None or has_quota(entry.workload)


def recheck_after(entry: QueueEntry | None) -> timedelta:
    """Time until its place is looked up again."""
    place = entry.place if entry is not None else 0
    return min(_RECHECK_MOST, max(_RECHECK_LEAST, timedelta(seconds=place)))


def eviction(entry: QueueEntry | None) -> str | None:
    """Sentence about the loss of its quota; None for a server that has not lost it."""
    if entry is None or is_admitted(entry) or entry.earlier is not None:
        return None
    known = (entry.workload, *entry.others)
    found = (condition(one.status.conditions, "Evicted") for one in known if one is not None)
    lost = next((one for one in found if one is not None and one.holds), None)
    if lost is None:
        return None
    by = f" for {entry.preemptor}" if entry.preemptor else ""
    return f"Its quota was taken away{by}: {_sentence(lost)}"


def preemptor_uid(workload: Workload | None) -> str | None:
    """UID of the Workload for which this one was evicted."""
    for kind in ("Preempted", "Evicted"):
        told = condition(workload.status.conditions, kind) if workload is not None else None
        if told is not None and told.holds and (found := _PREEMPTOR.search(told.message)):
            return found[1]
    return None


def quota_steps(entry: QueueEntry | None) -> tuple[ConditionStep, ...]:
    """The step of a server that is in a queue."""
    kind = ConditionType.QUOTA
    if entry is None:
        return ()
    if is_admitted(entry):
        return (ConditionStep(kind, True, "QuotaReserved"),)
    if (lost := eviction(entry)) is not None:
        return (ConditionStep(kind, False, "Evicted", lost),)
    if entry.workload is None:
        return (ConditionStep(kind, None, "Waiting"),)
    # Kueue says nothing of one that it has not tried, as behind another of the same size.
    told = condition(entry.workload.status.conditions, "QuotaReserved") or _UNTRIED
    if never_fits(told):
        return (ConditionStep(kind, False, EXCEEDS_QUOTA, f"{entry.queue} is too small: {_sentence(told)}"),)
    return (ConditionStep(kind, False, told.reason or "Pending", f"{_position(entry)}{_sentence(told)}"),)


def waiting_sentence(entry: QueueEntry) -> str:
    """Describes the position in the queue of a running server that waits for another flavor."""
    conditions = entry.workload.status.conditions if entry.workload is not None else ()
    return f"{_position(entry)}{_sentence(condition(conditions, 'QuotaReserved') or _UNTRIED)}"


def never_fits(reserved: Condition) -> bool:
    """Return whether the request is larger than the quota of every node flavor, lent quota included."""
    return _NEVER_FITS in reserved.message and _FITS_LATER not in reserved.message


def _position(entry: QueueEntry) -> str:
    return f"Place {entry.place} of {entry.waiting} in {entry.queue}: " if entry.place else ""


def is_waiting(workload: Workload) -> bool:
    """Return whether it waits for quota."""
    done = any(_holds(workload, kind) for kind in ("QuotaReserved", "Finished"))
    return not done and workload.spec.active is not False and workload.meta.deleted is None


def queue_order(workload: Workload) -> tuple[int, str, str]:
    """Key by which Kueue sorts those that wait: the highest priority first, then the oldest."""
    meta = workload.meta
    return -(workload.spec.priority or 0), meta.created or "", meta.uid


def queue_status(entry: QueueEntry | None) -> QueueStatus | None:
    if entry is None:
        return None
    waits = not is_admitted(entry)
    return QueueStatus(
        name=entry.queue,
        cluster_queue=entry.cluster_queue or None,
        place=entry.place if waits and entry.place else None,
        waiting=entry.waiting if waits and entry.place else None,
        holders=entry.holders if waits else (),
    )


def unreported_readiness(seen: "Observed", *, ready: bool) -> str:
    """Workload to which Kueue's condition PodsReady is missing: without it Kueue may evict what runs."""
    workload = seen.quota.workload if seen.quota is not None else None
    if workload is None or not ready or not is_admitted(seen.quota) or _holds(workload, PODS_READY):
        return ""
    return workload.meta.name


def finished_workloads(seen: "Observed", *, running: bool) -> tuple[str, ...]:
    """Workloads whose quota is free again: those that none of the Pods needs any longer."""
    entry = seen.quota
    if entry is None:
        return ()
    if not seen.is_drained:
        moved = running and _has_moved(seen)
        kept = None if moved else entry.earlier
        # Its Pods may still be on an evicted one, unless they are known to be on another.
        elsewhere = moved or kept is not None
        others = (
            one for one in entry.others if one is not kept and (elsewhere or not _holds(one, "Evicted"))
        )
        # The machines to which it was to move: their quota is free, and it asks again.
        lost = [entry.workload] if kept is not None and _holds(entry.workload, "Evicted") else []
        return tuple(
            one.meta.name for one in (*others, *lost) if one is not None and one.meta.deleted is None
        )
    ended = entry.workload is not None and (not running or eviction(entry) is not None)
    last = (entry.workload,) if ended and entry.workload is not None else ()
    return tuple(one.meta.name for one in (*entry.others, *last) if one.meta.deleted is None)


def _has_moved(seen: "Observed") -> bool:
    """Return whether all its Pods are on the machines of its present request."""
    settled = seen.is_whole and len(seen.pods) == len(seen.working_pods)
    return is_admitted(seen.quota) and settled and seen.change is ResizeMode.NONE


def has_quota(workload: Workload | None) -> bool:
    """Return whether it is admitted and was not evicted."""
    return _holds(workload, "Admitted") and not _holds(workload, "Evicted")


def _holds(workload: Workload | None, kind: str) -> bool:
    told = condition(workload.status.conditions, kind) if workload is not None else None
    return told is not None and told.holds


def _sentence(told: Condition) -> str:
    return f"{told.message.rstrip('.') or 'no reason is given'}."
