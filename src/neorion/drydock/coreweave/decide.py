"""What CoreWeave would do about a pool now. Values in, values out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from neorion.drydock.coreweave.nodepool_types import FAULT, NodeBacking, NodePool


class Fault(StrEnum):
    """What can be made to go wrong with a pool."""

    QUOTA = "quota"
    NO_CAPACITY = "no-capacity"
    SLOW_BOOT = "slow-boot"
    NEVER_READY = "never-ready"
    NODE_LOST = "node-lost"
    RATE_LIMIT = "rate-limit"


@dataclass(frozen=True, slots=True)
class PoolNode:
    """A node of the pool as it is. A lost one has stopped speaking."""

    name: str
    ready: bool
    idle: bool
    lost: bool = False


@dataclass(frozen=True, slots=True)
class PoolCondition:
    """One condition of the pool."""

    type: str
    holds: bool
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class NodePoolPlan:
    """What to do, and what to report. `lose` is the one node that is to fall silent."""

    order: int
    remove: tuple[str, ...]
    lose: str
    queued: int
    verdicts: tuple[PoolCondition, ...]


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
    dead = tuple(each.name for each in machines if each.lost and fault is not Fault.NODE_LOST)
    here = [each for each in machines if each.name not in dead]
    missing = max(0, pool.spec.target - len(here))
    held = fault in {Fault.QUOTA, Fault.NO_CAPACITY} and missing > 0
    surplus = _surplus(pool, here)
    return NodePoolPlan(
        order=0 if held else missing,
        remove=(*dead, *surplus),
        lose=_to_lose(here) if fault is Fault.NODE_LOST else "",
        queued=missing if held else 0,
        verdicts=_verdicts(pool, here, fault if held else None),
    )


def _invalid(pool: NodePool, known_types: Collection[str], *, real: bool) -> PoolCondition | None:
    if pool.spec.instance_type not in known_types:
        words = f"There is no instance type {pool.spec.instance_type}."
        return PoolCondition("Valid", False, "InvalidInstanceType", words)
    if pool.machines not in list(NodeBacking):
        words = f'Machines are "simulated" or "real", not "{pool.machines}".'
        return PoolCondition("Valid", False, "InvalidMachines", words)
    if pool.machines == NodeBacking.REAL and not real:
        words = "Real machines need a cluster with real nodes: neorion drydock up --nodes 1."
        return PoolCondition("Valid", False, "NoRealMachines", words)
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


def _verdicts(
    pool: NodePool, machines: Sequence[PoolNode], held_by: Fault | None
) -> tuple[PoolCondition, ...]:
    over, empty = held_by is Fault.QUOTA, held_by is Fault.NO_CAPACITY
    ready = sum(each.ready and not each.lost for each in machines)
    met = ready == pool.spec.target == len(machines)
    return (
        PoolCondition("Valid", True, "Valid"),
        PoolCondition("Quota", False, "Over", "The target exceeds the quota.")
        if over
        else PoolCondition("Quota", True, "Under"),
        PoolCondition("Capacity", False, "NoneAvailable", "No machine of this type is free.")
        if empty
        else PoolCondition("Capacity", True, "Sufficient"),
        PoolCondition(
            "AtTarget",
            met,
            "TargetMet" if met else "TargetNotMet",
            f"{ready} of {pool.spec.target} nodes are ready.",
        ),
    )
