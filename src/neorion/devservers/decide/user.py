"""Decision about one user: objects and status."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from msgspec import structs

from neorion.devservers.decide.tenant import (
    SERVERS_COUNTED,
    ClusterInfo,
    Manifest,
    local_queue,
    revoked_manifests,
    tenant_manifests,
)
from neorion.devservers.model.kube_types import DevServerUser
from neorion.devservers.model.kueue import LocalQueue
from neorion.devservers.model.tenancy import USER_LABEL, own_namespace
from neorion.devservers.model.user import (
    DevServerUserStatus,
    FetchedKeys,
    UserCondition,
    UserConditionType,
    UserPhase,
)
from neorion.keel.base import Duration
from neorion.keel.kube import condition
from neorion.keel.kube.core import Namespace, ResourceQuota

# Changes made to a user's objects by hand are undone this often.
REPAIR_EVERY: Final = Duration.of(minutes=10)
# The cluster counts a quota within seconds, and deletes a namespace within some more.
LOOK_AGAIN: Final = Duration.of(seconds=2)
# An administrator makes the quota of a team before or after its users.
QUEUE_EVERY: Final = Duration.of(seconds=10)


@dataclass(frozen=True, slots=True)
class UserObserved:
    """One user and what the cluster has of them, at one moment."""

    user: DevServerUser
    namespace: Namespace | None = None
    quota: ResourceQuota | None = None
    cluster: ClusterInfo = ClusterInfo()  # noqa: RUF009 -- frozen
    # Where the user has a login at the key server.
    fetched: FetchedKeys | None = None
    queue: LocalQueue | None = None
    has_kueue: bool = False
    # The refusal of the cluster when something that the user needs could not be written.
    refused: str = ""


@dataclass(frozen=True, slots=True)
class UserDecision:
    """Decision about a user. `objects` are applied, `revoked` are deleted, and `recount` counts the quota again."""

    status: DevServerUserStatus
    objects: tuple[Manifest, ...] = ()
    revoked: tuple[Manifest, ...] = ()
    recount: bool = False
    wake: Duration = REPAIR_EVERY


def decide_user(seen: UserObserved, now: datetime) -> UserDecision:
    name, spec = seen.user.meta.name, seen.user.spec
    obstacle = _obstacle(seen)
    if obstacle is not None:
        reason, message = obstacle
        status = _status(seen, now, UserPhase.FAILED, (UserConditionType.NAMESPACE, False, reason, message))
        return UserDecision(status, wake=LOOK_AGAIN if reason == "NamespaceTerminating" else REPAIR_EVERY)
    fetched = _fetched_keys(seen)
    keys = tuple(dict.fromkeys((*spec.keys, *fetched)))
    objects = (*tenant_manifests(name, structs.replace(spec, keys=keys), seen.cluster), *_queue(seen))
    namespace = (UserConditionType.NAMESPACE, seen.namespace is not None, "Applied", "")
    if spec.suspended:
        status = _status(seen, now, UserPhase.SUSPENDED, namespace)
        return UserDecision(status, objects, (*revoked_manifests(name), *_former_queue(seen)))
    counted = seen.quota is not None and SERVERS_COUNTED in seen.quota.status.used
    waits = "" if counted else f"The cluster has not counted the quota of {own_namespace(name)} yet."
    quota = (UserConditionType.QUOTA, counted, "Counted" if counted else "NotCounted", waits)
    phase = UserPhase.PROVISIONED if counted else UserPhase.PENDING
    queue = _queue_step(seen)
    status = _status(seen, now, phase, namespace, quota, *_keys_step(seen), *queue)
    recount = seen.quota is not None and not counted
    settled = REPAIR_EVERY if all(done for _, done, *_ in queue) else QUEUE_EVERY
    wake = settled if counted else LOOK_AGAIN
    return UserDecision(status, objects, _former_queue(seen), recount=recount, wake=wake)


def _queue(seen: UserObserved) -> tuple[Manifest, ...]:
    wanted = seen.user.spec.cluster_queue
    return (local_queue(seen.user.meta.name, wanted),) if wanted is not None and seen.has_kueue else ()


def _former_queue(seen: UserObserved) -> tuple[Manifest, ...]:
    """The queue of another team: Kueue never changes one."""
    held = seen.queue.spec.cluster_queue if seen.queue is not None else None
    return () if held in (None, seen.user.spec.cluster_queue) else (local_queue(seen.user.meta.name, held),)


def _queue_step(seen: UserObserved) -> "tuple[_Step, ...]":
    wanted, kind = seen.user.spec.cluster_queue, UserConditionType.QUEUE
    if wanted is None:
        return ()
    if not seen.has_kueue:
        return ((kind, False, "NoKueue", f"The cluster has no Kueue, and so no quota {wanted}."),)
    told = condition(seen.queue.status.conditions, "Active") if seen.queue is not None else None
    if told is not None and told.holds and not _former_queue(seen):
        return ((kind, True, "Active", ""),)
    reason, why = (told.reason, told.message.rstrip(".")) if told is not None else ("", "")
    sentence = f"The queue of {wanted} is not ready: {why or 'Kueue has not looked at it yet'}."
    return ((kind, False, reason or "Pending", sentence),)


def _fetched_keys(seen: UserObserved) -> tuple[str, ...]:
    """An answer of the key server, or the keys of the same login from before where there was none."""
    if not seen.user.spec.github or seen.fetched is None:
        return ()
    return seen.user.fetched_keys if seen.fetched.problem else seen.fetched.keys


def _keys_step(seen: UserObserved) -> "tuple[_Step, ...]":
    if not seen.user.spec.github or seen.fetched is None:
        return ()
    problem = seen.fetched.problem
    return ((UserConditionType.KEYS, not problem, "NotFetched" if problem else "Fetched", problem),)


def _obstacle(seen: UserObserved) -> tuple[str, str] | None:
    """Why nothing can be written for the user: the reason and its sentence."""
    name, space = seen.user.meta.name, seen.namespace
    if seen.refused:
        return "Refused", seen.refused
    if space is None:
        return None
    if space.meta.labels.get(USER_LABEL) != name:
        taken = f"The namespace {space.meta.name} exists and is not that of the user {name}."
        return "NamespaceTaken", taken
    if space.meta.deleted is not None:
        return "NamespaceTerminating", f"The namespace {space.meta.name} is being deleted."
    return None


_Step = tuple[UserConditionType, bool, str, str]


def _status(seen: UserObserved, now: datetime, phase: UserPhase, *steps: _Step) -> DevServerUserStatus:
    user = seen.user
    message = next((message for _, done, _, message in steps if not done and message), None)
    ready = phase is UserPhase.PROVISIONED
    last: _Step = (UserConditionType.READY, ready, phase.value, message or "")
    return DevServerUserStatus(
        phase=phase,
        namespace=own_namespace(user.meta.name),
        message=message,
        fetched_keys=_fetched_keys(seen),
        fetched_from=seen.user.spec.github,
        observed_generation=user.meta.generation,
        conditions=tuple(_conditions(user, (*steps, last), now)),
    )


def _conditions(user: DevServerUser, steps: tuple[_Step, ...], now: datetime) -> Iterator[UserCondition]:
    before = {one.type: one for one in user.status.conditions}
    for kind, done, reason, message in steps:
        status, old = "True" if done else "False", before.get(kind)
        since = old.last_transition_time if old is not None and old.status == status else now
        yield UserCondition(
            type=kind, status=status, reason=reason, message=message, last_transition_time=since
        )
