"""The one decision about a server: from all that is seen of it to all that is to be done."""

from dataclasses import replace as changed
from datetime import datetime
from typing import TypeGuard

from msgspec.structs import replace

from neorion.devservers.decide import manifests
from neorion.devservers.decide.cost import carried
from neorion.devservers.decide.decision import Decision, DeleteServer, EventNote, Observed, StartServer
from neorion.devservers.decide.flavor_change import ClusterFacts, home_should_grow, with_actual_home_size
from neorion.devservers.decide.lifetime import next_start, readable, schedule_fault, should_start
from neorion.devservers.decide.manifests import Manifest, OperatorSettings
from neorion.devservers.decide.names import HOME_DELETE_AFTER, STOPPED_BECAUSE, service_name
from neorion.devservers.decide.objects import objects_of
from neorion.devservers.decide.progress import (
    ConditionStep,
    conditions,
    obstacle,
    runs,
    silent_after,
    silent_steps,
)
from neorion.devservers.decide.quota import finished_workloads
from neorion.devservers.decide.rejected_writes import contested_steps, refusal_steps
from neorion.devservers.decide.resize import ResizeMode
from neorion.devservers.decide.running import RECHECK_AFTER, decide_running, earliest, later, price_of
from neorion.devservers.decide.ssh import with_sshd
from neorion.devservers.model import ConditionType, Cost, DevServerStatus, Phase, StopReason
from neorion.devservers.model.field_types import span
from neorion.keel.kube.core import PersistentVolumeClaim

_MAKES_PODS = frozenset({"Deployment", "StatefulSet"})
# A home that is to be kept is only marked: nothing else of it may be in the way of that.
_AS_IT_IS = ClusterFacts(home_grows=False)


def decide(seen: Observed, settings: OperatorSettings, now: datetime) -> Decision:
    if seen.server.meta.deleted is not None:
        return _deleting(seen, datetime.fromisoformat(seen.server.meta.deleted))
    seen = _own_pods(seen)
    if seen.inherited and seen.server.spec.running:
        return _replacing_old_pod(seen, settings, now)
    settings = _keep_running_image(with_sshd(settings, seen), seen)
    if seen.server.spec.running:
        return decide_running(seen, settings, now)
    return _stopped(seen, settings, now)


def needs_cluster_facts(seen: Observed) -> bool:
    """Reports whether facts about the cluster must be read before a decision."""
    server = seen.server
    if server.meta.deleted is not None:
        return False
    placed = seen.pod is not None and bool(seen.pod.spec.node_name)
    changes = server.spec.running and placed and seen.change is not ResizeMode.NONE
    return changes or any(home_should_grow(server.spec, home) for home in seen.homes)


def stop_reason(seen: Observed) -> StopReason:
    """Reason of the stop, from the annotation. Without the annotation, a user stopped the server."""
    mark = seen.server.meta.annotations.get(STOPPED_BECAUSE, "")
    return next((reason for reason in StopReason if reason.value == mark), StopReason.ASKED)


def _keep_running_image(settings: OperatorSettings, seen: Observed) -> OperatorSettings:
    """Keeps the image of a running server without an image in its spec. A new default applies at its next start."""
    template = seen.body.spec.template.spec.containers if seen.body else ()
    if not template or not any(map(runs, seen.working_pods)) or seen.change is ResizeMode.RECREATE:
        return settings
    return changed(settings, default_image=template[0].image)


def _deleting(seen: Observed, deleted: datetime) -> Decision:
    """Marks the homes for deletion after their retention, and then lets the server go.

    The retention counts from this deletion, also for a home that has the mark of an earlier one.
    """
    spec, before = seen.server.spec, seen.server.status
    status = replace(before, phase=Phase.TERMINATING, ready=False, message=None)
    staying = {home.meta.name: home for home in (*seen.homes, *seen.kept_homes) if _stays(home)}
    until = (deleted + span(spec.home.retention)).isoformat(timespec="seconds")
    marked = tuple(_marked_home(seen, home, until) for home in staying.values())
    told = all(home.meta.annotations.get(HOME_DELETE_AFTER) == until for home in staying.values())
    note = EventNote("HomeKept", f"The home is kept until {until}; a server of the same name takes it over.")
    return Decision(status, objects=marked, release=True, notes=() if told else (note,))


def _stays(home: PersistentVolumeClaim | None) -> TypeGuard[PersistentVolumeClaim]:
    return home is not None and home.meta.deleted is None


def _marked_home(seen: Observed, home: PersistentVolumeClaim, until: str) -> Manifest:
    spec = with_actual_home_size(seen.server.spec, home, _AS_IT_IS)
    marked = manifests.home_claim(seen.identity, spec, home.meta.name)
    marked["spec"]["accessModes"] = list(home.spec.access_modes) or marked["spec"]["accessModes"]
    marked["metadata"].setdefault("annotations", {})[HOME_DELETE_AFTER] = until
    return marked


def _own_pods(seen: Observed) -> Observed:
    """Without pods of a deleted server of its name that are on their way out: nothing of this one waits for them."""
    since = seen.server.meta.created or ""
    own = tuple(pod for pod in seen.pods if pod.meta.deleted is None or (pod.meta.created or since) >= since)
    return seen if len(own) == len(seen.pods) else changed(seen, pods=own)


def _replacing_old_pod(seen: Observed, settings: OperatorSettings, now: datetime) -> Decision:
    """Waits for the pod of a deleted server of the same name, which has another host key."""
    alone = changed(seen, pods=())
    decision = decide_running(alone, with_sshd(settings, alone), now)
    emptied = tuple(_without_pods(one) if one["kind"] in _MAKES_PODS else one for one in decision.objects)
    return changed(decision, objects=emptied)


def _without_pods(body: Manifest) -> Manifest:
    return {**body, "spec": {**body["spec"], "replicas": 0}}


def _stopped(seen: Observed, settings: OperatorSettings, now: datetime) -> Decision:
    spec, before = seen.server.spec, seen.server.status
    reason, lifecycle = stop_reason(seen), readable(spec.lifecycle)
    stopped_at = before.stopped_at or now
    gone_at = stopped_at + span(lifecycle.retention) if reason is StopReason.EXPIRED else None
    at_rest = Phase.EXPIRED if reason is StopReason.EXPIRED else Phase.STOPPED
    stuck = (*silent_steps(seen.pods, now), *_lost_quota(before, reason))
    status = DevServerStatus(
        phase=Phase.STOPPING if seen.pods else at_rest,
        conditions=conditions((*stuck, *contested_steps(seen.contested)), before.conditions, now),
        message=obstacle((*refusal_steps(seen.refused), *stuck))
        or seen.contested
        or schedule_fault(spec.lifecycle.schedule),
        observed_generation=seen.server.meta.generation,
        pod_names=tuple(sorted(pod.meta.name for pod in seen.pods)),
        service_name=service_name(seen.identity.name),
        ssh_host_key=before.ssh_host_key,
        stopped_at=stopped_at,
        stop_reason=reason,
        delete_after=gone_at,
        activity=before.activity,
        flavor=before.flavor,
        cost=_rest_cost(seen, now),
    )
    edit = None
    if gone_at is not None and gone_at <= now:
        edit = DeleteServer()
    elif should_start(lifecycle, stopped_at, reason, now):
        edit = StartServer()
    again = now + RECHECK_AFTER if seen.refused else None
    wake = earliest(gone_at, next_start(lifecycle, reason, now), again, later(silent_after(seen.pods), now))
    if seen.flavor is None:
        return Decision(status, edit=edit, halt=seen.body is not None, wake=wake)
    return Decision(
        status,
        objects=objects_of(seen, seen.flavor.spec, settings),
        edit=edit,
        finished=finished_workloads(seen, running=False),
        wake=wake,
    )


def _lost_quota(before: DevServerStatus, reason: StopReason) -> tuple[ConditionStep, ...]:
    """Why a server that lost its quota rests, for as long as it does."""
    known = (one for one in before.conditions if one.type is ConditionType.QUOTA and one.reason == "Evicted")
    told = next(known, None) if reason is StopReason.PREEMPTED else None
    return () if told is None else (ConditionStep(told.type, False, told.reason, told.message),)


def _rest_cost(seen: Observed, now: datetime) -> Cost | None:
    """While it rests, only another price is written."""
    before = seen.server.status
    if before.cost is None:
        return None
    price = price_of(seen, before.flavor.applied) if before.flavor else None
    return carried(before.cost, price, now, running=False)
