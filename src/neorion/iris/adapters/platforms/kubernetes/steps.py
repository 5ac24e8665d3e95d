"""What to do next about one slice. Pure: what is there goes in, steps come out."""

from collections.abc import Sequence
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

# A kubelet that is gone never reports the end of its Pods: after this their machine may be given back.
_OVERDUE = Duration.of(seconds=30)


@dataclass(frozen=True, slots=True)
class Observed:
    """A slice as the cluster shows it. `missing` are workers without a Pod, by number and name.

    `nodes` counts the machines of its pool that are left, and `silent` names those that say nothing any more.
    """

    record: Record
    pods: Sequence[Pod]
    missing: Sequence[tuple[int, str]]
    pool: NodePool | None
    nodes: int
    silent: frozenset[str]
    now: Instant


@dataclass(frozen=True, slots=True)
class CreatePool:
    """Buys the machines."""


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Starts the worker of one machine."""

    number: int


@dataclass(frozen=True, slots=True)
class MarkStarted:
    """Everything was created: what is missing from now on is lost."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The slice cannot be had, or was lost."""

    error: Error


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Ends one worker."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class DeletePool:
    """Gives the machines back."""

    pool: NodePool


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing is left of the slice."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after this time, whatever changes until then."""

    span: Duration


Step = CreatePool | CreatePod | MarkStarted | Fail | DeletePod | DeletePool | Forget | Wait


def next_steps(seen: Observed, template: GroupTemplate | None, patience: Duration) -> list[Step]:
    """In this order. The first that fails ends the turn; the next turn sees how far it came."""
    if seen.record.deleting:
        return _end(seen)
    if seen.record.failure:
        return []
    if template is None:
        words = f"The cluster file has no scale group {seen.record.group}."
        return [Fail(Invalid("iris.no_group", words, hint="Add the group, or let the slice go."))]
    trouble = _pool_trouble(seen, template, patience) or _worker_trouble(seen)
    if trouble is not None:
        return [Fail(trouble)]
    return [*_begin(seen, template), *_look_again(seen, patience)]


def accepted(seen: Observed, template: GroupTemplate | None) -> bool:
    """Whether nothing but time stands between the slice and its machines."""
    if not seen.record.started or template is None:
        return False
    return template.pool is None or (seen.pool is not None and promised(seen.pool))


def describe(seen: Observed) -> SliceStatus:
    record = seen.record
    hosts = tuple(pod.meta.name for pod in seen.pods if is_placed(pod) and not loss(pod, seen.silent))
    message, trouble = record.failure, record.trouble if record.failure else None
    if record.deleting:
        state = SliceState.DELETING
    elif record.failure:
        state = SliceState.FAILED
    elif record.started and len(hosts) == record.wanted.machines:
        state = SliceState.BOOTSTRAPPING
    else:
        state = SliceState.CREATING
        message = _waits_for(seen)
    return SliceStatus(record.id, record.group, state, hosts, message, trouble)


def _begin(seen: Observed, template: GroupTemplate) -> list[Step]:
    if seen.record.started:
        return []
    steps: list[Step] = []
    if template.pool is not None and seen.pool is None:
        steps.append(CreatePool())
    steps += [CreatePod(number) for number, _ in seen.missing]
    return [*steps, MarkStarted()]


def _pool_trouble(seen: Observed, template: GroupTemplate, patience: Duration) -> Error | None:
    if template.pool is None:
        return None
    group, pool = seen.record.group, seen.pool
    if pool is None or pool.meta.deleted is not None:
        gone = seen.record.started or pool is not None
        words = f"The NodePool {seen.record.name} was deleted."
        return Invalid("iris.pool_deleted", words, hint="See who deleted it.") if gone else None
    refusal = verdict("CoreWeave", group, pool)
    if refusal is None and (left := _left(seen, patience)) is not None and not left:
        refusal = queued("CoreWeave", group, pool)
    return platform_error(group, refusal) if refusal is not None else None


def _worker_trouble(seen: Observed) -> Error | None:
    for pod in seen.pods:
        if why := loss(pod, seen.silent):
            return Invalid("iris.worker_lost", why)
    if seen.record.started and seen.missing:
        return Invalid("iris.worker_lost", f"The Pod {seen.missing[0][1]} is gone.")
    return None


def _left(seen: Observed, patience: Duration) -> Duration | None:
    """How much of the patience with CoreWeave's queue is left; None where nothing is queued."""
    if seen.pool is None or queued("CoreWeave", "", seen.pool) is None:
        return None
    said = condition(seen.pool.status.conditions, "Capacity")
    since = said.changed if said is not None and said.changed else seen.pool.meta.created
    if since is None:
        return patience
    return patience - seen.now.since(instant(since))


def _look_again(seen: Observed, patience: Duration) -> list[Step]:
    left = _left(seen, patience)
    return [Wait(left)] if left is not None and left else []


def _waits_for(seen: Observed) -> str:
    if seen.pool is not None and (error := queued("CoreWeave", seen.record.group, seen.pool)) is not None:
        return error.sentence
    return next((why for pod in seen.pods if (why := waiting(pod))), "")


def _end(seen: Observed) -> list[Step]:
    """Pods first, then the machines, then the record: whatever is cut short goes on where it stopped."""
    living: list[Step] = [DeletePod(pod) for pod in seen.pods if pod.meta.deleted is None]
    if living:
        return living
    ends = [_overdue_at(pod) for pod in seen.pods]
    left = max((end.since(seen.now) for end in ends), default=Duration(0))
    if left:
        # Machines are given back when their tasks have ended, or when their kubelet cannot say so any more.
        return [Wait(left)]
    if seen.pool is not None and seen.pool.meta.deleted is None:
        return [DeletePool(seen.pool)]
    if seen.pool is not None or seen.nodes or seen.pods:
        return []
    return [Forget()]


def _overdue_at(pod: Pod) -> Instant:
    """The server writes the end of the grace into the mark of deletion."""
    return instant(pod.meta.deleted or "") + _OVERDUE
