"""The differences between two runs."""

from collections.abc import Iterator

from msgspec import Struct

from neorion.conformance.model import CheckResult, Run


class Change(Struct, frozen=True):
    """A requirement about which two runs disagree. A run that does not have it says "absent"."""

    requirement: str
    before: str
    after: str
    reason: str


def changes_between(before: Run, after: Run) -> Iterator[Change]:
    first = {each.requirement: each for each in before.results}
    second = {each.requirement: each for each in after.results}
    for name in dict.fromkeys([*first, *second]):
        old, new = first.get(name), second.get(name)
        if _standing(old) != _standing(new):
            reason = new.reason if new is not None else "The later run does not have this requirement."
            yield Change(name, _shown(old), _shown(new), reason)


def _standing(result: CheckResult | None) -> tuple[object, ...]:
    return () if result is None else (result.verdict, result.outcome.environment)


def _shown(result: CheckResult | None) -> str:
    if result is None:
        return "absent"
    environment = result.outcome.environment
    return f"{result.verdict} ({environment})" if environment else str(result.verdict)
