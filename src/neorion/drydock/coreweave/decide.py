"""Decides the next steps of CoreWeave for a pool. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neorion.drydock.coreweave.nodepool_types import FAULT, NodeBacking, NodePool


class Fault(StrEnum):
    """A failure that a pool can be told to have."""

    QUOTA = "quota"
    QUOTA_NOT_SET = "quota-not-set"
    NO_CAPACITY = "no-capacity"
    QUEUED = "queued"
    CAPACITY_UNKNOWN = "capacity-unknown"
    SLOW_BOOT = "slow-boot"
    NEVER_READY = "never-ready"
    NODE_LOST = "node-lost"
    RATE_LIMIT = "rate-limit"
    SPOT_RECLAIM = "spot-reclaim"


# Why a pool gets no more nodes: its condition, the reason and the words.
_HELD = {
    Fault.QUOTA: ("Quota", "Over", "The target exceeds the quota."),
    Fault.QUOTA_NOT_SET: ("Quota", "NotSet", "There is no quota for this instance type."),
    Fault.NO_CAPACITY: ("Capacity", "NoneAvailable", "No machine of this type is free."),
    Fault.QUEUED: ("Capacity", "QueuedAwaitingCapacity", "The pool waits until machines come free."),
    Fault.CAPACITY_UNKNOWN: ("Capacity", "CapacityUnknown", "It is not known whether machines are free."),
}


@dataclass(frozen=True, slots=True)
class PoolNode:
    """A node of the pool as it is. A lost one has stopped speaking; the notice of an expired one is over."""

    name: str
    ready: bool
    idle: bool
    lost: bool = False
    reclaimed: bool = False
    expired: bool = False


@dataclass(frozen=True, slots=True)
class PoolCondition:
    """One condition of the pool."""

    type: str
    holds: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class NodePoolPlan:
    """The next steps, and the report. `lose` is the one node that is to fall silent, `reclaim` the one that gets a notice."""

    order: int
    remove: tuple[str, ...]
    lose: str
    queued: int
    verdicts: tuple[PoolCondition, ...]
    reclaim: str = ""


def fault_of(pool: NodePool) -> Fault | None:
    word = pool.meta.annotations.get(FAULT, "")
    return Fault(word) if word in list(Fault) else None


def decide(
    pool: NodePool, machines: Sequence[PoolNode], known_types: Collection[str], *, real: bool = False
) -> NodePoolPlan:
    """Lost machines are replaced once their fault is taken back. `real` says whether real machines can be had."""
    fault = fault_of(pool)
    invalid = _invalid(pool, known_types, real=real)
    if invalid is not None:
        return NodePoolPlan(0, (), "", 0, (invalid,))
    dead = tuple(
        each.name for each in machines if each.expired or (each.lost and fault is not Fault.NODE_LOST)
    )
    here = [each for each in machines if each.name not in dead]
    missing = max(0, pool.spec.target - len(here))
    held = fault in _HELD and missing > 0
    surplus = _surplus(pool, here)
    return NodePoolPlan(
        order=0 if held else missing,
        remove=(*dead, *surplus),
        lose=_to_lose(here) if fault is Fault.NODE_LOST else "",
        reclaim=_to_reclaim(pool, here) if fault is Fault.SPOT_RECLAIM else "",
        queued=missing if held else 0,
        verdicts=_verdicts(pool, here, fault if held else None),
    )


def _invalid(pool: NodePool, known_types: Collection[str], *, real: bool) -> PoolCondition | None:
    if pool.spec.instance_type not in known_types:
        words = f"There is no instance type {pool.spec.instance_type}."
        return PoolCondition("Validated", False, "InvalidInstanceType", words)
    if pool.machines not in list(NodeBacking):
        words = f'Machines are "simulated" or "real", not "{pool.machines}".'
        return PoolCondition("Validated", False, "InvalidMachines", words)
    if pool.machines == NodeBacking.REAL and not real:
        words = "Real machines need a cluster with real nodes: neorion drydock up --nodes 1."
        return PoolCondition("Validated", False, "NoRealMachines", words)
    return None


def _surplus(pool: NodePool, machines: Sequence[PoolNode]) -> tuple[str, ...]:
    """Those still booting first, then idle ones; busy ones only where the pool says so."""
    count = max(0, len(machines) - pool.spec.target)
    ordered = sorted(machines, key=lambda each: (each.ready, not each.idle, each.name))
    may_go = pool.spec.lifecycle.scale_down_strategy == "PreferIdle"
    return tuple(each.name for each in ordered if each.idle or may_go)[:count]


def _to_lose(machines: Sequence[PoolNode]) -> str:
    if any(each.lost for each in machines):
        return ""
    return next((each.name for each in machines if each.ready), "")


def _to_reclaim(pool: NodePool, machines: Sequence[PoolNode]) -> str:
    """Only spot machines are reclaimed."""
    if pool.spec.compute_class != "spot":
        return ""
    return next((each.name for each in machines if each.ready and not each.reclaimed), "")


def _verdicts(
    pool: NodePool, machines: Sequence[PoolNode], held_by: Fault | None
) -> tuple[PoolCondition, ...]:
    kind, reason, words = _HELD[held_by] if held_by is not None else ("", "", "")
    ready = sum(each.ready and not each.lost for each in machines)
    met = ready == pool.spec.target == len(machines)
    return (
        PoolCondition("Validated", True, "Valid"),
        *(
            PoolCondition(each, False, reason, words) if each == kind else PoolCondition(each, True, good)
            for each, good in (("Quota", "Under"), ("Capacity", "Sufficient"))
        ),
        PoolCondition(
            "AtTarget",
            met,
            "TargetMet" if met else "TargetNotMet",
            f"{ready} of {pool.spec.target} nodes are ready.",
        ),
    )
