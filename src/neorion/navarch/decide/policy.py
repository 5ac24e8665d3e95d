"""Health policies: rules in CEL over an event, its node and the node's recent past. The first rule that matches decides.

Evaluating is pure and without a limit of its own: whoever evaluates somebody's rules does it where time and memory are
limited (`neorion.navarch.adapters.judge`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import cel

from neorion.capacity.gpu import Remedy, xid
from neorion.keel.base import Duration, Instant, Invalid, did_you_mean
from neorion.navarch.model import EventKind, Health, HealthEvent, Node, Repair, Verdict

VARIABLES: Final = ("event", "node", "history", "recent", "xid")
# Long enough for any rule a person can read.
CONDITION_MAX: Final = 2_000
RULES_MAX: Final = 200
# What a rule may look back on: enough for repeats over a day, little enough to travel with each event.
RECENT_MAX: Final = 64


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
class Compiled:
    """A policy ready to judge."""

    policy: Policy
    programs: tuple[cel.Program, ...]


def compiled(policy: Policy) -> Compiled:
    """Refuses what could never be evaluated: wrong syntax, variables that do not exist."""
    if len(policy.rules) > RULES_MAX:
        raise Invalid(
            "navarch.policy", f"{policy.name} has more than {RULES_MAX} rules.", hint="join some of them"
        )
    return Compiled(policy, tuple(_program(policy, rule) for rule in policy.rules))


def judge(policy: Compiled, situation: Mapping[str, Any]) -> Verdict:
    """The verdict of the first rule that matches. A rule that fails does not match, and the verdict says so."""
    failed: list[str] = []
    for rule, program in zip(policy.policy.rules, policy.programs, strict=True):
        try:
            matches = program.execute(dict(situation)) is True
        except Exception as error:  # noqa: BLE001 -- whatever a rule runs into is the rule's failure, never ours
            failed.append(f"rule {rule.name} failed: {str(error)[:100]}")
            continue
        if matches:
            return _verdict(rule, situation, failed)
    return Verdict("", Health.HEALTHY, sentence="; ".join(["no rule matches", *failed]))


def situation(
    event: HealthEvent, node: Node, recent: Sequence[HealthEvent], repairs: Sequence[Repair], now: Instant
) -> dict[str, Any]:
    """What rules see, as plain values that travel between processes. `recent` does not hold the event itself."""
    past = recent[-RECENT_MAX:]
    known = xid(event.xid)
    return {
        "event": _event(event),
        "recent": [_event(one) for one in past],
        "xid": {
            "code": known.code,
            "name": known.name,
            "class": known.kind.value if event.kind is EventKind.XID else "",
            "action": known.remedy.value,
            "certain": known.certain,
        },
        "node": {
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
        },
        "history": _history(event, past, repairs, now),
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
    event: HealthEvent, past: Sequence[HealthEvent], repairs: Sequence[Repair], now: Instant
) -> dict[str, int]:
    """Counts that rules most often need; anything else can be counted from `recent`."""

    def count(span: Duration, *, same_gpu: bool = False) -> int:
        return sum(
            one.signature == event.signature
            and event.at.since(one.at) <= span
            and (not same_gpu or one.gpu == event.gpu)
            for one in past
        )

    hour, day, week = (Duration.of(hours=hours) for hours in (1, 24, 7 * 24))
    return {
        "same_1h": count(hour),
        "same_24h": count(day),
        "same_gpu_1h": count(hour, same_gpu=True),
        "same_gpu_24h": count(day, same_gpu=True),
        "repairs_7d": sum(now.since(repair.opened) <= week for repair in repairs),
    }


def _program(policy: Policy, rule: Rule) -> cel.Program:
    where = f"rule {rule.name[:60]!r} of {policy.name}"
    if len(rule.condition) > CONDITION_MAX:
        raise Invalid("navarch.rule", f"The condition of {where} is longer than {CONDITION_MAX} characters.")
    try:
        program = cel.compile(rule.condition)
    except (ValueError, RuntimeError, TypeError) as error:
        words = " ".join(str(error).split())[:200]
        raise Invalid(
            "navarch.rule", f"The condition of {where} is no CEL: {words}", hint="see the guide to policies"
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


def _verdict(rule: Rule, situation: Mapping[str, Any], failed: Sequence[str]) -> Verdict:
    event, code = situation["event"], situation["xid"]
    is_xid = event["event_type"] == EventKind.XID.value
    advised = Remedy(code["action"]) if is_xid else Remedy.NOTHING
    certain = (is_xid and code["certain"]) if rule.certain is None else rule.certain
    seen = f"XID {code['code']} ({code['name']})" if is_xid else event["event_type"].replace("_", " ")
    where = f" on GPU {event['gpu_index']}" if event["gpu_index"] >= 0 else ""
    sentence = "; ".join([f"{seen}{where}, rule {rule.name}", *failed])
    return Verdict(rule.name, rule.result, advised if rule.remedy is None else rule.remedy, certain, sentence)
