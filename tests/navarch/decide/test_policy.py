"""Policies: what rules see, which decides, and what is refused before it could."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neorion.capacity.gpu import CATALOGUE, Remedy
from neorion.keel.base import Invalid
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.decide.policy import NodeHistory, Policy, Rule, compiled, evaluate, policy_input
from neorion.navarch.model import EventKind, Health, HealthEvent, PolicyResult
from neorion.navarch.testing import NOW, later, node

DEFAULT = compiled(default_policy())


def verdict(kind: EventKind = EventKind.XID, recent: int = 0, **event: Any) -> PolicyResult:
    seen = HealthEvent(NOW, kind, **event)
    past = [HealthEvent(later(-600 * (n + 1)), kind, **event) for n in range(recent)]
    return evaluate(DEFAULT, policy_input(seen, node(), NodeHistory(past), NOW))


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_the_default_policy_does_what_the_catalogue_advises(code: int):
    found, known = verdict(xid=code, gpu=0), CATALOGUE[code]
    if known.kind.blames_the_machine:
        assert (found.result, found.remedy, found.certain) == (Health.UNHEALTHY, known.remedy, known.certain)
    else:
        assert found.result is not Health.UNHEALTHY


@pytest.mark.parametrize("code", [13, 31])
def test_an_applications_error_that_returns_is_watched_and_costs_nothing(code: int):
    again = verdict(xid=code, gpu=0, recent=3)
    assert (again.rule, again.result, again.remedy) == (
        "application-error-again",
        Health.DEGRADED,
        Remedy.NOTHING,
    )


@pytest.mark.parametrize("code", [13, 31, 43, 45, 68, 94])
@pytest.mark.parametrize("wanted", [Remedy.REPLACE, Remedy.RMA])
def test_no_rule_pays_for_an_applications_error_with_a_node(code: int, wanted: Remedy):
    rules = compiled(one_rule("true", remedy=wanted, certain=True))
    found = evaluate(
        rules, policy_input(HealthEvent(NOW, EventKind.XID, xid=code), node(), NodeHistory(), NOW)
    )
    assert found.remedy is CATALOGUE[code].remedy
    assert f"{found.remedy.value} instead of {wanted.value}" in found.sentence
    worn = evaluate(rules, policy_input(HealthEvent(NOW, EventKind.XID, xid=79), node(), NodeHistory(), NOW))
    assert worn.remedy is wanted


@pytest.mark.parametrize(
    ("kind", "metrics", "result", "remedy"),
    [
        (EventKind.RECOVERY_ACTION, {"action": 1.0}, Health.UNHEALTHY, Remedy.RESET_GPU),
        (EventKind.RECOVERY_ACTION, {"action": 2.0}, Health.UNHEALTHY, Remedy.REBOOT),
        (EventKind.RECOVERY_ACTION, {"action": 0.0}, Health.HEALTHY, Remedy.NOTHING),
        (EventKind.GPU_MISSING, {"found": 7.0, "expected": 8.0}, Health.UNHEALTHY, Remedy.REBOOT),
        (EventKind.GPU_MISSING, {"found": 8.0, "expected": 8.0}, Health.HEALTHY, Remedy.NOTHING),
        (EventKind.ROW_REMAP, {"failure": 1.0}, Health.UNHEALTHY, Remedy.RMA),
        (EventKind.ROW_REMAP, {"pending": 1.0}, Health.DEGRADED, Remedy.NOTHING),
        (EventKind.THERMAL, {"margin": -1.0}, Health.UNHEALTHY, Remedy.REPLACE),
        (EventKind.THERMAL, {"margin": 5.0}, Health.DEGRADED, Remedy.NOTHING),
        (EventKind.THERMAL, {"margin": 30.0}, Health.HEALTHY, Remedy.NOTHING),
        (EventKind.SILENCE, {}, Health.UNHEALTHY, Remedy.REBOOT),
        (EventKind.PREEMPTION, {}, Health.UNHEALTHY, Remedy.REPLACE),
        (EventKind.THERMAL, {}, Health.DEGRADED, Remedy.NOTHING),
    ],
)
def test_the_default_policy_knows_every_kind(
    kind: EventKind, metrics: dict[str, float], result: Health, remedy: Remedy
):
    found = verdict(kind, metrics=metrics)
    assert (found.result, found.remedy) == (result, remedy)


def test_a_verdict_names_its_rule_and_what_was_seen():
    assert verdict(xid=79, gpu=3).sentence == "XID 79 (GPU has fallen off the bus) on GPU 3, rule gpu-fault"


def one_rule(condition: str, **rest: Any) -> Policy:
    return Policy("mine", (Rule("only", condition, Health.UNHEALTHY, **rest),))


def test_rules_see_the_node_and_its_past():
    rule = one_rule('node.pool == "training" && recent.exists(e, e.xid == 48) && history.same_24h >= 1')
    past = [HealthEvent(later(-60), EventKind.XID, xid=48), HealthEvent(later(-50), EventKind.XID, xid=74)]
    seen = HealthEvent(NOW, EventKind.XID, xid=74)
    assert evaluate(compiled(rule), policy_input(seen, node(), NodeHistory(past), NOW)).rule == "only"
    assert evaluate(compiled(rule), policy_input(seen, node(), NodeHistory(past[:1]), NOW)).rule == ""


def test_a_rule_that_fails_does_not_match_and_the_verdict_says_so():
    found = evaluate(
        compiled(one_rule("event.metrics.missing > 1.0")),
        policy_input(HealthEvent(NOW, EventKind.XID), node(), NodeHistory(), NOW),
    )
    assert found.result is Health.HEALTHY
    assert "rule only failed" in found.sentence


@pytest.mark.parametrize(
    ("condition", "says"),
    [("event.xid ==", "is no CEL"), ("evnt.xid == 1", "evnt"), ("x" * 3_000, "longer than")],
)
def test_what_could_never_match_is_refused(condition: str, says: str):
    with pytest.raises(Invalid, match=says):
        compiled(one_rule(condition))


def test_a_misspelt_variable_gets_a_suggestion():
    with pytest.raises(Invalid) as wrong:
        compiled(one_rule("evnt.xid == 1"))
    assert wrong.value.hint == 'did you mean "event"?'


@given(
    st.sampled_from(EventKind),
    st.integers(0, 9_999),
    st.dictionaries(st.text(max_size=20), st.floats(allow_nan=False), max_size=5),
)
def test_any_event_gets_a_verdict(kind: EventKind, code: int, metrics: dict[str, float]):
    assert verdict(kind, xid=code, metrics=metrics).result in Health
