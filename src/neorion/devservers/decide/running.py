"""A server that should run: how far it is, when it will stop, whether its flavor changes under it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from neorion.devservers.decide import manifests
from neorion.devservers.decide.cost import carried, opened, times
from neorion.devservers.decide.decision import (
    Decision,
    DeleteServer,
    Edit,
    Observed,
    RevertFlavor,
    StartServer,
    StopServer,
)
from neorion.devservers.decide.event_notes import event_notes
from neorion.devservers.decide.flavor_change import (
    BlockReason,
    FlavorChange,
    block_reason,
    home_cannot_grow,
)
from neorion.devservers.decide.interruption import is_interrupted
from neorion.devservers.decide.lifetime import (
    LifetimeInput,
    due,
    next_end,
    next_warning,
    readable,
    schedule_fault,
    strictest,
)
from neorion.devservers.decide.manifests import Manifest, OperatorSettings
from neorion.devservers.decide.names import STOPPED_BECAUSE
from neorion.devservers.decide.notifications import (
    activity,
    alert_of,
    expiring_step,
    idle_steps,
    settled,
    warned,
)
from neorion.devservers.decide.objects import objects_of
from neorion.devservers.decide.per_user_limit import over_limit_reason
from neorion.devservers.decide.progress import (
    ConditionStep,
    began,
    conditions,
    obstacle,
    out_of_memory,
    phase,
    silent_after,
    silent_steps,
)
from neorion.devservers.decide.quota import (
    eviction,
    finished_workloads,
    is_admitted,
    queue_status,
    quota_steps,
    recheck_after,
    unreported_readiness,
    waiting_sentence,
)
from neorion.devservers.decide.ranks import rank_statuses, whole_steps
from neorion.devservers.decide.rejected_writes import contested_steps, pod_refusal, refusal_steps
from neorion.devservers.decide.resize import ResizeMode, pending
from neorion.devservers.decide.ssh import has_sshd, mount_deadline, ssh_deadline, ssh_steps
from neorion.devservers.model import (
    AppliedFlavor,
    ConditionType,
    Cost,
    Deadline,
    DevServerStatus,
    FlavorLimits,
    OnExpire,
    Phase,
    Price,
    StopReason,
)
from neorion.keel.kube.core import Pod

# A larger machine may need a new node, which takes minutes. After this time the change is undone.
UNDO_AFTER = timedelta(minutes=10)
# What says that a server has no place on its flavor.
_NO_PLACE = frozenset({ConditionType.SCHEDULED, ConditionType.QUOTA})
# What a kubelet says that cannot give a pod what it was asked to have, now or ever.
_NO_ROOM = frozenset({"Deferred", "Infeasible"})
# What holds a change, or was refused, is tried again after this: quotas are raised and nodes are added without telling us.
RECHECK_AFTER = timedelta(minutes=1)


def decide_running(seen: Observed, settings: OperatorSettings, now: datetime) -> Decision:
    taken = _steps(seen, now)
    moved = seen.change
    held = _flavor_change_block(seen, settings, moved)
    flavor = _flavor(seen, taken, now, held)
    server = running(seen, now, flavor)
    queued = _is_queued(seen)
    shown = settled(server) if not queued else None
    status = _status(seen, taken, _Facts(server, shown, flavor, moved, held), now)
    end = due(server, now)
    alert = alert_of(seen, status) if end is None else None
    undo_at = _undo_at(seen, flavor, taken)
    timed = shown if shown and shown.reason is not StopReason.IDLE else None
    return Decision(
        status=status,
        objects=_objects(seen, settings, moved, held),
        edit=_edit(seen, end, flavor if undo_at and undo_at <= now else None),
        finished=finished_workloads(seen, running=True),
        ready_workload=unreported_readiness(seen, ready=status.ready),
        resize=manifests.resources_of(seen.flavor.spec)
        if seen.flavor and moved is ResizeMode.IN_PLACE and not held
        else None,
        notes=event_notes(seen, status, alert, end),
        alert=alert,
        # What idleness brings is looked for, and a look wakes by itself.
        wake=earliest(
            next_end(server),
            next_warning(server, timed, now),
            undo_at,
            now + RECHECK_AFTER if held or seen.refused else None,
            now + recheck_after(seen.quota) if queued or seen.waits_to_move else None,
            None if status.ready else later(ssh_deadline(seen.pod), now),
            None if status.ready else later(mount_deadline(seen.pod), now),
            None if seen.is_whole else later(silent_after(seen.pods), now),
        ),
    )


def running(seen: Observed, now: datetime, flavor: AppliedFlavor | None) -> LifetimeInput:
    """Input of decisions about the end of a server that should run, on the flavor of its next status."""
    before = seen.server.status
    since = _since(seen, now)
    started = began(seen.pod) if seen.pod else None
    told = before.activity.last_time if before.activity else None
    return LifetimeInput(
        lifecycle=readable(seen.server.spec.lifecycle),
        since=since,
        limits=_limits(seen, flavor),
        used=max(time for time in (since, started, told) if time is not None),
        look=seen.look,
        told=before.deadline,
    )


def _limits(seen: Observed, flavor: AppliedFlavor | None) -> FlavorLimits:
    """A server that does not get the flavor it asks for is not free of the limits of the one it has."""
    elsewhere = flavor is not None and flavor.applied != seen.server.spec.flavor
    counting = (seen.flavor, seen.standing if elsewhere else None)
    return strictest(one.spec.limits for one in counting if one is not None and one.spec.limits is not None)


def price_of(seen: Observed, applied: str) -> Price | None:
    """Price of the server's current flavor; None if the flavor is gone or differs from the spec's."""
    if seen.flavor is None or applied != seen.server.spec.flavor:
        return None
    price = seen.flavor.spec.price or Price()
    return price if seen.distributed is None else times(price, seen.nodes)


def later(time: datetime | None, now: datetime) -> datetime | None:
    return time if time is not None and time > now else None


def earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Facts:
    server: LifetimeInput
    end: Deadline | None
    flavor: AppliedFlavor
    moved: ResizeMode
    held: BlockReason | None


def _steps(seen: Observed, now: datetime) -> tuple[ConditionStep, ...]:
    *way, ready = whole_steps(seen)
    waits = () if seen.is_whole else silent_steps(seen.pods, now)
    quota = refusal_steps(_refused(seen)) or _quota_steps(seen)
    return (_accepted(seen), *quota, *way, *(waits or (ready,)))


def _quota_steps(seen: Observed) -> tuple[ConditionStep, ...]:
    if seen.waits_to_move:
        return (ConditionStep(ConditionType.QUOTA, True, "QuotaReserved"),)
    return quota_steps(seen.quota)


def _is_queued(seen: Observed) -> bool:
    return not is_admitted(seen.quota) and not seen.waits_to_move


def _refused(seen: Observed) -> str:
    """A Deployment that could not replace a pod says so for a while; with a pod there is nothing to say."""
    return seen.refused or (pod_refusal(seen.body) if seen.body and seen.pod is None else "")


def _accepted(seen: Observed) -> ConditionStep:
    spec, kind = seen.server.spec, ConditionType.FLAVOR
    if seen.flavor is None:
        missing = f'There is no flavor "{spec.flavor}"; devctl flavors lists those there are.'
        return ConditionStep(kind, False, "FlavorNotFound", missing)
    if seen.pod is None and (told := over_limit_reason(seen)):
        return ConditionStep(kind, False, "TooMany", told)
    fault = schedule_fault(spec.lifecycle.schedule)
    if fault is not None:
        return ConditionStep(kind, False, "BadSchedule", fault)
    return ConditionStep(kind, True, "Accepted")


def _since(seen: Observed, now: datetime) -> datetime:
    """A new server runs since it was asked for; one that was stopped, since it was started again."""
    before, created = seen.server.status, seen.server.meta.created
    if before.running_since is not None:
        return before.running_since
    if before.phase is Phase.QUEUED:
        return now
    if before.phase is None and created is not None:
        return datetime.fromisoformat(created)
    return now


def _flavor(
    seen: Observed, taken: tuple[ConditionStep, ...], now: datetime, held: BlockReason | None
) -> AppliedFlavor:
    """Remembers where the server came from until it stands on the new flavor."""
    wanted, before = seen.server.spec.flavor, seen.server.status.flavor
    if before is None:
        return AppliedFlavor(applied=wanted)
    waits = _is_queued(seen) and not seen.pods
    if waits or (seen.stands and not _writes_deployment(seen, held)):
        return before
    if before.applied != wanted:
        if wanted == before.previous:
            # The way back is not undone in its turn: the server would go to and fro for ever.
            return AppliedFlavor(applied=wanted)
        return AppliedFlavor(applied=wanted, previous=before.applied, changed=now)
    if before.previous is not None and seen.server.status.running_since is None:
        # It rested meanwhile; how long it looks for a place counts from its start.
        return replace(before, changed=now)
    pods = seen.working_pods
    stands = seen.is_whole and phase(taken, seen.pod) is Phase.RUNNING and not any(map(pending, pods))
    return AppliedFlavor(applied=wanted) if stands and seen.change is ResizeMode.NONE else before


def _flavor_change_block(seen: Observed, settings: OperatorSettings, moved: ResizeMode) -> BlockReason | None:
    """Reason why a running server cannot change its flavor."""
    before = seen.server.status.flavor
    elsewhere = seen.pod is not None and before is not None and before.applied != seen.server.spec.flavor
    if (elsewhere or moved is not ResizeMode.NONE) and (told := over_limit_reason(seen)):
        return BlockReason("TooMany", told)
    if moved is not ResizeMode.NONE and seen.waits_to_move and seen.quota is not None:
        return BlockReason("WaitsForQuota", f"The flavor waits for quota. {waiting_sentence(seen.quota)}")
    if moved is ResizeMode.NONE or seen.around is None or seen.pod is None or seen.flavor is None:
        return None
    in_place = moved is ResizeMode.IN_PLACE
    wanted = seen.server.spec.flavor
    move = FlavorChange(
        seen.pod, wanted, seen.machine or seen.flavor.spec, in_place, settings.autoscaled, seen.nodes
    )
    return block_reason(move, seen.around)


def _undo_at(seen: Observed, flavor: AppliedFlavor, taken: tuple[ConditionStep, ...]) -> datetime | None:
    waits = any(pending(pod) in _NO_ROOM for pod in seen.working_pods)
    stuck = waits or any(step.type in _NO_PLACE and step.blocked for step in taken)
    if not stuck or _is_queued(seen) or flavor.previous is None or flavor.changed is None:
        return None
    return flavor.changed + UNDO_AFTER


def _edit(seen: Observed, due: Deadline | None, undo: AppliedFlavor | None) -> Edit | None:
    if due is not None:
        expired = due.reason is StopReason.EXPIRED
        if expired and seen.server.spec.lifecycle.on_expire is OnExpire.DELETE:
            return DeleteServer()
        return StopServer(due.reason)
    if seen.pod is not None and eviction(seen.quota) is not None:
        return StopServer(StopReason.PREEMPTED)
    if is_interrupted(seen):
        return StopServer(StopReason.INTERRUPTED)
    if undo is not None and undo.previous is not None:
        return RevertFlavor(undo.previous)
    # Who started it again may not know of the mark; left there, it would explain the next stop.
    return StartServer() if STOPPED_BECAUSE in seen.server.meta.annotations else None


def _objects(
    seen: Observed, settings: OperatorSettings, moved: ResizeMode, held: BlockReason | None
) -> tuple[Manifest, ...]:
    """Nothing is changed under a server whose flavor is gone or wrong; while it is held, nothing of its pod."""
    if seen.flavor is None or _is_refused(seen):
        return ()
    made = objects_of(seen, seen.flavor.spec, settings, _kept_resources(seen, moved))
    return made if _writes_deployment(seen, held) else made[:-1]


def _writes_deployment(seen: Observed, held: BlockReason | None) -> bool:
    """Reports whether its Deployment is written for the spec's flavor. Otherwise the Deployment and its pods stay."""
    return seen.flavor is not None and not _is_refused(seen) and held is None


def _is_refused(seen: Observed) -> bool:
    return seen.pod is None and over_limit_reason(seen) is not None


def _kept_resources(seen: Observed, moved: ResizeMode) -> Manifest | None:
    """A pod that is or was resized in place keeps its Deployment's template: another template is another pod."""
    if moved is ResizeMode.RECREATE or seen.pod is None or seen.body is None:
        return None
    containers = seen.body.spec.template.spec.containers
    if not containers:
        return None
    kept = containers[0].resources
    return {
        part: dict(amounts)
        for part, amounts in (("requests", kept.requests), ("limits", kept.limits))
        if amounts
    }


def _status(
    seen: Observed, taken: tuple[ConditionStep, ...], facts: _Facts, now: datetime
) -> DevServerStatus:
    spec, before = seen.server.spec, seen.server.status
    refused = taken[0].blocked and seen.pod is None
    marks = warned(seen, facts.server, facts.end, now)
    queued = _is_queued(seen)
    current = Phase.FAILED if refused else phase(taken[1:], seen.pod)
    if queued and seen.pod is None and current is Phase.PENDING:
        current = Phase.QUEUED
    resizing = _resizing(seen, facts)
    ssh = ssh_steps(seen.pod, now, ready=current is Phase.RUNNING)
    threats = (
        *idle_steps(seen, facts.server),
        expiring_step(marks, facts.end),
        resizing,
        *contested_steps(seen.contested),
    )
    return DevServerStatus(
        phase=current,
        ready=current is Phase.RUNNING,
        # An SSH server that stays silent is news of the machine that runs now; how the last one ended is not.
        message=obstacle((*taken[:-1], *ssh, taken[-1], resizing)) or seen.contested or None,
        observed_generation=seen.server.meta.generation,
        conditions=conditions((*taken, *ssh, *threats), before.conditions, now),
        pod_names=tuple(sorted(pod.meta.name for pod in seen.pods)),
        ranks=rank_statuses(seen),
        service_name=manifests.service_name(seen.identity.name),
        ssh_endpoint=f"{_host(seen)}:22" if has_sshd(seen.pod) else None,
        ssh_host_key=before.ssh_host_key,
        urls={port.name: f"http://{_host(seen)}:{port.port}" for port in spec.ports},
        # Its time begins with its machines.
        running_since=None if current is Phase.QUEUED else facts.server.since,
        start_time=before.start_time or (now if current is Phase.RUNNING else None),
        activity=activity(seen, facts.server),
        deadline=facts.end,
        last_oom=_last_oom(seen.working_pods, before.last_oom),
        warned=marks,
        flavor=facts.flavor,
        cost=_cost(seen, facts.flavor, now),
        queue=queue_status(seen.quota),
    )


def _resizing(seen: Observed, facts: _Facts) -> ConditionStep:
    held = facts.held or home_cannot_grow(seen.server.spec, seen.home, seen.around)
    if held is not None:
        return ConditionStep(
            ConditionType.RESIZING, False, held.reason, f"{held.sentence} The server goes on as it is."
        )
    short = next((told for pod in seen.working_pods if (told := pending(pod)) in _NO_ROOM), "")
    if facts.moved is ResizeMode.NONE and short:
        waits = "Its node has no room for the flavor yet. The server goes on as it is."
        return ConditionStep(ConditionType.RESIZING, True, short, waits)
    resizing = facts.moved is not ResizeMode.NONE
    return ConditionStep(ConditionType.RESIZING, resizing, facts.moved.name.title().replace("_", ""), "")


def _cost(seen: Observed, flavor: AppliedFlavor, now: datetime) -> Cost:
    """An account opens with the server. It costs what its machine does from the moment it has one."""
    before, price = seen.server.status, price_of(seen, flavor.applied)
    account = before.cost or opened(price or Price(), _since(seen, now))
    return carried(account, price, now, running=any(pod.spec.node_name for pod in seen.working_pods))


def _last_oom(pods: Iterable[Pod], before: datetime | None) -> datetime | None:
    ends = (out_of_memory(pod) for pod in pods)
    return max((datetime.fromisoformat(end) for end in ends if end), default=before)


def _host(seen: Observed) -> str:
    return f"{manifests.service_name(seen.identity.name)}.{seen.identity.namespace}.svc"
