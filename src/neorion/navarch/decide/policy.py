"""Health policies: rules in CEL over an event, its node and the node's recent past. The first rule that matches decides.

Evaluation is pure and has no limits of its own. `neorion.navarch.adapters.policy_engine` limits its time and memory.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import cel

from neorion.capacity.gpu import Remedy, XidClass, xid
from neorion.keel.base import Duration, Instant, Invalid, did_you_mean
from neorion.navarch.model import EventKind, Health, HealthEvent, Node, PolicyResult, Repair

VARIABLES: Final = ("event", "node", "history", "recent", "xid")
# Long enough for any rule a person can read.
CONDITION_MAX: Final = 2_000
RULES_MAX: Final = 200
# What a rule may look back on: enough for repeats over a day, little enough to travel with each event.
RECENT_MAX: Final = 64
_HOUR, _DAY, _WEEK = (Duration.of(hours=hours) for hours in (1, 24, 7 * 24))


@dataclass(frozen=True, slots=True)
class Rule:
    """`remedy` None takes what the XID catalogue advises; `certain` None takes the catalogue's word too."""

    name: str
    condition: str
    result: Health
    remedy: Remedy | None = None
    certain: bool | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in the order in which they are asked."""

    name: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy ready to judge. `sees` are the variables that any of its rules speaks of."""

    policy: Policy
    programs: tuple[cel.Program, ...]
    sees: frozenset[str]


def compiled(policy: Policy) -> CompiledPolicy:
    """Refuses what could never be evaluated: wrong syntax, variables that do not exist."""
    if len(policy.rules) > RULES_MAX:
        raise Invalid(
            "navarch.policy", f"{policy.name} has more than {RULES_MAX} rules.", hint="Join some of them."
        )
    programs = tuple(_program(policy, rule) for rule in policy.rules)
    sees = frozenset(name for program in programs for name in program.variables())
    return CompiledPolicy(policy, programs, sees.intersection(VARIABLES))


def evaluate(policy: CompiledPolicy, situation: Mapping[str, Any]) -> PolicyResult:
    """The verdict of the first rule that matches. A rule that fails does not match, and the verdict says so."""
    failed: list[str] = []
    # Values are made CEL's own once for all rules: that costs far more than the rules themselves.
    seen = cel.Context(variables={name: situation[name] for name in policy.sees})
    for rule, program in zip(policy.policy.rules, policy.programs, strict=True):
        try:
            matches = program.execute(seen) is True
        except Exception as error:  # noqa: BLE001 -- whatever a rule runs into is the rule's failure, never ours
            failed.append(f"rule {rule.name} failed: {str(error)[:100]}")
            continue
        if matches:
            return _verdict(rule, situation, failed)
    return PolicyResult("", Health.HEALTHY, sentence="; ".join(["no rule matches", *failed]))


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """History before an event: the node's newest events without the event itself, and its repairs."""

    events: Sequence[HealthEvent] = ()
    repairs: Sequence[Repair] = ()


def policy_input(
    event: HealthEvent,
    node: Node,
    past: NodeHistory,
    now: Instant,
    sees: AbstractSet[str] = frozenset(VARIABLES),
) -> dict[str, Any]:
    """Variables of rules, as plain values for another process. Variables that no rule uses may be omitted."""
    known = xid(event.xid)
    recent = past.events[-RECENT_MAX:]
    seen: dict[str, Any] = {
        "event": _event(event),
        "xid": {
            "code": known.code,
            "name": known.name,
            "class": known.kind.value if event.kind is EventKind.XID else "",
            "action": known.remedy.value,
            "certain": known.certain,
        },
    }
    if "node" in sees:
        seen["node"] = _node(node, now)
    if "recent" in sees:
        seen["recent"] = [_event(one) for one in recent]
    if "history" in sees:
        seen["history"] = _history(event, recent, past.repairs, now)
    return seen


def _node(node: Node, now: Instant) -> dict[str, Any]:
    return {
        "id": str(node.id),
        "pool": node.pool,
        "provider": node.place.provider,
        "instance_type": node.place.instance_type,
        "region": node.place.region,
        "zone": node.place.zone,
        "state": node.state.value,
        "health": node.health.value,
        "gpu_count": node.gpus,
        "age_seconds": now.since(node.born).seconds,
    }


def _event(event: HealthEvent) -> dict[str, Any]:
    return {
        "timestamp": event.at.ns // 1_000_000_000,
        "gpu_index": event.gpu,
        "gpu_uuid": event.gpu_uuid,
        "system": "gpu" if event.gpu >= 0 else "node",
        "event_type": event.kind.value,
        "xid": event.xid,
        "message": event.message,
        "metrics": dict(event.metrics),
    }


def _history(
    event: HealthEvent, recent: Sequence[HealthEvent], repairs: Sequence[Repair], now: Instant
) -> dict[str, int]:
    """Counts that rules most often need; anything else can be counted from `recent`."""
    hour, day = event.at - _HOUR, event.at - _DAY
    of_day = [one for one in recent if one.at.ns >= day.ns and one.like(event)]
    of_hour = [one for one in of_day if one.at.ns >= hour.ns]
    return {
        "same_1h": len(of_hour),
        "same_24h": len(of_day),
        "same_gpu_1h": sum(one.gpu == event.gpu for one in of_hour),
        "same_gpu_24h": sum(one.gpu == event.gpu for one in of_day),
        "repairs_7d": sum(now.since(repair.opened) <= _WEEK for repair in repairs),
    }


def _program(policy: Policy, rule: Rule) -> cel.Program:
    where = f"rule {rule.name[:60]!r} of {policy.name}"
    if len(rule.condition) > CONDITION_MAX:
        raise Invalid(
            "navarch.rule",
            f"The condition of {where} is longer than {CONDITION_MAX} characters.",
            hint="Split the condition into several rules.",
        )
    try:
        program = cel.compile(rule.condition)
    except (ValueError, RuntimeError, TypeError) as error:
        words = " ".join(str(error).split())[:200]
        raise Invalid(
            "navarch.rule", f"The condition of {where} is no CEL: {words}", hint="Read the guide to policies."
        ) from None
    for name in program.variables():
        if name not in VARIABLES and not _bound(rule.condition, name):
            raise Invalid(
                "navarch.rule",
                f"The condition of {where} speaks of {name!r}, which does not exist.",
                hint=did_you_mean(name, VARIABLES),
            )
    return program


def _bound(condition: str, name: str) -> bool:
    """A name that a macro brings in: `recent.exists(e, e.xid == 79)`."""
    return any(f".{macro}({name}," in condition.replace(" ", "") for macro in _MACROS)


_MACROS: Final = ("all", "exists", "exists_one", "filter", "map")


def _verdict(rule: Rule, situation: Mapping[str, Any], failed: Sequence[str]) -> PolicyResult:
    event, code = situation["event"], situation["xid"]
    is_xid = event["event_type"] == EventKind.XID.value
    advised = Remedy(code["action"]) if is_xid else Remedy.NOTHING
    certain = (is_xid and code["certain"]) if rule.certain is None else rule.certain
    seen = f"XID {code['code']} ({code['name']})" if is_xid else event["event_type"].replace("_", " ")
    where = f" on GPU {event['gpu_index']}" if event["gpu_index"] >= 0 else ""
    told = [f"{seen}{where}, rule {rule.name}", *failed]
    remedy = advised if rule.remedy is None else rule.remedy
    if remedy.costs_the_node and code["class"] == XidClass.APPLICATION:
        # Another machine would run the same application: no rule may pay for that with a node.
        told.append(f"an application's error never costs a node: {advised.value} instead of {remedy.value}")
        remedy = advised
    return PolicyResult(rule.name, rule.result, remedy, certain, "; ".join(told))
