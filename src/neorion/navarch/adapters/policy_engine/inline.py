"""Judges in this process: for simulations, and for policies of our own."""

from collections.abc import Mapping, Sequence
from typing import Any

from neorion.keel.base import NotFound, did_you_mean
from neorion.navarch.decide.policy import CompiledPolicy, Policy, compiled, evaluate
from neorion.navarch.model import PolicyResult


class InlinePolicyEngine:
    """Evaluates at once, without limits: not for rules that others wrote."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._policies = {name: compiled(policy) for name, policy in policies.items()}

    def variables(self, policy: str) -> frozenset[str]:
        return known(policy, self._policies).sees

    async def evaluate(self, policy: str, situations: Sequence[Mapping[str, Any]]) -> Sequence[PolicyResult]:
        rules = known(policy, self._policies)
        return [evaluate(rules, situation) for situation in situations]


def known(policy: str, policies: Mapping[str, CompiledPolicy]) -> CompiledPolicy:
    found = policies.get(policy)
    if found is None:
        raise NotFound(
            "navarch.no_policy", f"There is no policy {policy[:80]!r}.", hint=did_you_mean(policy, policies)
        )
    return found
