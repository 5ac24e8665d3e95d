"""What every judge of health events promises."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from neorion.keel.base import NotFound
from neorion.navarch.adapters.config_file import default_policy
from neorion.navarch.adapters.policy_engine import InlinePolicyEngine, SubprocessPolicyEngine
from neorion.navarch.adapters.policy_engine.subprocess_engine import FAILURES_MAX
from neorion.navarch.decide.policy import NodeHistory, Policy, Rule, policy_input
from neorion.navarch.model import EventKind, Health, HealthEvent
from neorion.navarch.ports import PolicyEngine
from neorion.navarch.testing import NOW, node

pytestmark = pytest.mark.anyio

POLICIES = {
    "default": default_policy(),
    "strict": Policy("strict", (Rule("everything", "true", Health.UNHEALTHY),)),
}


def seen(code: int) -> dict[str, Any]:
    return policy_input(HealthEvent(NOW, EventKind.XID, gpu=0, xid=code), node(), NodeHistory(), NOW)


@pytest.fixture(params=["inline", "process"])
async def engine(request: pytest.FixtureRequest) -> AsyncGenerator[PolicyEngine]:
    if request.param == "inline":
        yield InlinePolicyEngine(POLICIES)
        return
    async with SubprocessPolicyEngine(POLICIES) as found:
        yield found


async def test_every_situation_gets_its_verdict_in_order(engine: PolicyEngine):
    verdicts = await engine.evaluate("default", [seen(79), seen(13), seen(74)])
    assert [one.result for one in verdicts] == [Health.UNHEALTHY, Health.HEALTHY, Health.UNHEALTHY]
    assert [one.certain for one in verdicts] == [True, False, False]


async def test_each_policy_judges_by_its_own_rules(engine: PolicyEngine):
    (found,) = await engine.evaluate("strict", [seen(13)])
    assert (found.rule, found.result) == ("everything", Health.UNHEALTHY)


async def test_nothing_to_judge_is_no_verdict(engine: PolicyEngine):
    assert await engine.evaluate("default", []) == []


async def test_a_policy_that_does_not_exist_is_told_with_a_suggestion(engine: PolicyEngine):
    with pytest.raises(NotFound) as missing:
        await engine.evaluate("defualt", [seen(79)])
    assert "default" in missing.value.hint


# What only walls can promise.

LOOP = "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"
SLOW = (
    f"{LOOP}.all(a, {LOOP}.all(b, {LOOP}.all(c, {LOOP}.all(d, {LOOP}.all(e, {LOOP}.all(f, "
    "a + b + c + d + e + f > 0))))))"
)


@pytest.mark.timeout(360)  # a child is started three times, and each may use up its second of processor time
async def test_a_rule_that_never_ends_costs_a_verdict_and_nothing_else():
    policies = {"slow": Policy("slow", (Rule("bomb", f"event.xid == 1 && {SLOW}", Health.UNHEALTHY),))}
    async with SubprocessPolicyEngine(policies) as engine:
        harmless, bomb, after = await engine.evaluate("slow", [seen(2), seen(1), seen(2)])
        assert (harmless.result, after.result) == (Health.HEALTHY, Health.HEALTHY)
        assert bomb.result is Health.DEGRADED
        assert "too much time or memory" in bomb.sentence
        (again,) = await engine.evaluate("slow", [seen(2)])
        assert again.result is Health.HEALTHY


@pytest.mark.timeout(360)
async def test_a_policy_that_always_fails_is_given_up_after_a_few_events(monkeypatch: pytest.MonkeyPatch):
    policies = {
        "slow": Policy("slow", (Rule("bomb", SLOW, Health.UNHEALTHY),)),
        "quick": Policy("quick", ()),
    }
    started = 0
    async with SubprocessPolicyEngine(policies) as engine:
        start = engine._start

        async def count() -> None:
            nonlocal started
            started += 1
            await start()

        monkeypatch.setattr(engine, "_start", count)
        verdicts = await engine.evaluate("slow", [seen(1)] * 100)
        assert [one.result for one in verdicts] == [Health.DEGRADED] * 100
        assert started <= FAILURES_MAX + 1
        (other,) = await engine.evaluate("quick", [seen(1)])
        assert other.result is Health.HEALTHY


async def test_many_who_ask_at_once_get_each_their_own_verdicts(engine: PolicyEngine):
    codes, found = [79, 13, 74, 31, 48] * 8, dict[int, list[Health]]()

    async def ask(number: int, policy: str, *asked: int) -> None:
        found[number] = [one.result for one in await engine.evaluate(policy, [seen(code) for code in asked])]

    async with anyio.create_task_group() as tasks:
        for number, code in enumerate(codes):
            policy = "strict" if number % 7 == 3 else "default"
            tasks.start_soon(ask, number, policy, *[code] * (number % 4))
    for number, code in enumerate(codes):
        alone = await engine.evaluate("strict" if number % 7 == 3 else "default", [seen(code)])
        assert found[number] == [alone[0].result] * (number % 4)


async def test_who_goes_away_leaves_no_answer_to_the_next(engine: PolicyEngine):
    for steps in range(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.evaluate, "strict", [seen(13)] * 50)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        (found,) = await engine.evaluate("default", [seen(13)])
        assert found.rule == "application-error"


async def test_a_situation_may_leave_out_what_the_policy_does_not_see(engine: PolicyEngine):
    event = HealthEvent(NOW, EventKind.XID, gpu=0, xid=79)
    assert engine.variables("default") >= {"event", "history"}
    assert engine.variables("strict") == frozenset()
    for policy in POLICIES:
        short = policy_input(event, node(), NodeHistory(), NOW, engine.variables(policy))
        whole = policy_input(event, node(), NodeHistory(), NOW)
        assert await engine.evaluate(policy, [short]) == await engine.evaluate(policy, [whole])
