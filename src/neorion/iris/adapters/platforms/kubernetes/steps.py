"""Decides the next steps for one slice. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neorion.capacity.coreweave import NodePool, promised, queued, verdict
from neorion.iris.adapters.platforms.kubernetes.errors import platform_error
from neorion.iris.adapters.platforms.kubernetes.health import is_placed, loss, waiting
from neorion.iris.adapters.platforms.kubernetes.record import Record
from neorion.iris.adapters.platforms.kubernetes.settings import GroupTemplate
from neorion.iris.model import SliceState
from neorion.iris.ports import SliceStatus
from neorion.keel.base import Duration, Error, Instant, Invalid
from neorion.keel.kube import condition, instant
from neorion.keel.kube.core import Pod


@dataclass(frozen=True, slots=True)
class Observed:
    """A slice in the informers' caches. `missing` are workers without a Pod, by number and name.

    `nodes` counts its remaining machines, and `notices` gives the reasons of lost ones by node. It is `counted` when its
    pool's target includes its machines. A refusal is about the `youngest` slice. A `pool_in_use` has other slices.
    """

    record: Record
    pods: Sequence[Pod]
    missing: Sequence[tuple[int, str]]
    pool: NodePool | None
    nodes: int
    notices: Mapping[str, str]
    now: Instant
    counted: bool = True
    youngest: bool = True
    pool_in_use: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(pod.meta.name for pod in self.pods if is_placed(pod) and not loss(pod, self.notices))


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Starts the worker of one machine."""

    number: int


@dataclass(frozen=True, slots=True)
class MarkStarted:
    """Records that everything was created: a worker that is missing from now on is lost."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Marks the slice as failed: it could not be created, or was lost."""

    error: Error


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Ends one worker."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class DeleteRecord:
    """Deletes the record of a slice of which nothing is left."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Reconciles again after this time at the latest."""

    span: Duration


Step = CreatePod | MarkStarted | Fail | DeletePod | DeleteRecord | Wait


def next_steps(seen: Observed, template: GroupTemplate | None, patience: Duration) -> list[Step]:
    """Steps in their order. The first failure ends the reconciliation; the next one continues from there."""
    if seen.record.deleting:
        return _end(seen)
    if seen.record.failure:
        return []
    if template is None:
        sentence = f"The cluster file has no scale group {seen.record.group}."
        return [Fail(Invalid("iris.no_group", sentence, hint="Add the group, or let the slice go."))]
    trouble = _pool_trouble(seen, template, patience) or _worker_trouble(seen)
    if trouble is not None:
        return [Fail(trouble)]
    return [*_begin(seen, template), *_requeue(seen, patience)]


def accepted(seen: Observed, template: GroupTemplate | None) -> bool:
    """True when the slice only waits for its machines to boot."""
    if not seen.record.started or not seen.record.live or template is None:
        return False
    return template.pool is None or (seen.pool is not None and seen.counted and promised(seen.pool))


def describe(seen: Observed) -> SliceStatus:
    record = seen.record
    hosts = seen.hosts
    message, trouble = record.failure, record.trouble if record.failure else None
    if record.deleting:
        state = SliceState.DELETING
    elif record.failure:
        state = SliceState.FAILED
    elif record.started and len(hosts) == record.machines:
        state = SliceState.BOOTSTRAPPING
    else:
        state = SliceState.CREATING
        message = _waits_for(seen)
    return SliceStatus(record.id, record.group, state, hosts, message, trouble)


def _begin(seen: Observed, template: GroupTemplate) -> list[Step]:
    if seen.record.started or (template.pool is not None and seen.pool is None):
        return []
    return [*(CreatePod(number) for number, _ in seen.missing), MarkStarted()]


def _pool_trouble(seen: Observed, template: GroupTemplate, patience: Duration) -> Error | None:
    if template.pool is None:
        return None
    group, pool, record = seen.record.group, seen.pool, seen.record
    if pool is None or pool.meta.deleted is not None:
        # A shared pool is deleted with its last slice; a slice that is created meanwhile waits for the next pool.
        gone = seen.nodes > 0 if record.shared else record.started or pool is not None
        sentence = f"The NodePool {record.pool} was deleted."
        return Invalid("iris.pool_deleted", sentence, hint="See who deleted it.") if gone else None
    if len(seen.hosts) == record.machines or not seen.counted or not seen.youngest:
        # CoreWeave's refusal of more machines does not concern those that exist.
        return None
    if pool.spec.instance_type != template.pool.instance_type:
        sentence = (
            f"The NodePool {record.pool} has {pool.spec.instance_type}, not {template.pool.instance_type}."
        )
        return Invalid("iris.pool_type", sentence, hint="Wait until its slices are given back.")
    refusal = verdict("CoreWeave", group, pool)
    if refusal is None and (left := _left(seen, patience)) is not None and not left:
        refusal = queued("CoreWeave", group, pool)
    return platform_error(group, refusal) if refusal is not None else None


def _worker_trouble(seen: Observed) -> Error | None:
    for pod in seen.pods:
        if why := loss(pod, seen.notices):
            return Invalid("iris.worker_lost", why)
    if seen.record.started and seen.missing:
        return Invalid("iris.worker_lost", f"The Pod {seen.missing[0][1]} is gone.")
    return None


def _left(seen: Observed, patience: Duration) -> Duration | None:
    """Remaining time to wait in CoreWeave's queue; None where nothing is queued."""
    if seen.pool is None or queued("CoreWeave", "", seen.pool) is None:
        return None
    capacity = condition(seen.pool.status.conditions, "Capacity")
    since = capacity.changed if capacity is not None and capacity.changed else seen.pool.meta.created
    if since is None:
        return patience
    return patience - seen.now.since(instant(since))


def _requeue(seen: Observed, patience: Duration) -> list[Step]:
    left = _left(seen, patience)
    return [Wait(left)] if left is not None and left else []


def _waits_for(seen: Observed) -> str:
    if seen.pool is not None and (error := queued("CoreWeave", seen.record.group, seen.pool)) is not None:
        return error.sentence
    return next((why for pod in seen.pods if (why := waiting(pod))), "")


def _end(seen: Observed) -> list[Step]:
    """Deletes the Pods first, then the machines through their pool, then the record."""
    living: list[Step] = [DeletePod(pod) for pod in seen.pods if pod.meta.deleted is None]
    if living:
        return living
    pool_stays = seen.pool is not None and not seen.pool_in_use
    return [] if pool_stays or seen.nodes or seen.pods else [DeleteRecord()]
