"""From observations to a verdict, and from a verdict to a claim."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from neorion.conformance.model import Assertion, CheckResult, Control, Environment, Outcome, Status, Verdict

# The flag that a claim from simulated evidence has to name.
FORCED_NOTE: Final = "Claimed with --allow-simulated: the evidence does not come from hardware."


class Conclusion(NamedTuple):
    """A verdict and the one sentence that explains it."""

    verdict: Verdict
    reason: str


class Claim(NamedTuple):
    """The entry that PRODUCT.yaml may have for a requirement."""

    status: Status
    notes: str


def control_of(name: str, assertion: Assertion, *, arose: bool = True) -> Control:
    """A control trips when the same assertion fails where it must fail.

    `arose` says whether the situation came about: an assertion that fails for another reason shows nothing.
    """
    failure = assertion.detail if arose else f"The situation did not come about: {assertion.detail}"
    return Control(name, tripped=arose and not assertion.held, failure=failure)


def conclude(outcome: Outcome) -> Conclusion:
    """The verdict of a check that ran to its end."""
    reasons = (
        (Verdict.ERROR, outcome.disturbed),
        (Verdict.SKIP, outcome.missing),
        (Verdict.NOT_APPLICABLE, outcome.absent),
        (Verdict.UNKNOWN, outcome.unknown),
        (Verdict.FAIL, _failure(outcome)),
        (Verdict.ERROR, "" if outcome.assertions else "The check made no assertion."),
        (Verdict.INCONCLUSIVE, _doubt(outcome)),
    )
    passed = f"{len(outcome.assertions)} assertions held and {len(outcome.controls)} controls tripped."
    return next((Conclusion(*each) for each in reasons if each[1]), Conclusion(Verdict.PASS, passed))


def disturbed(disturbances: Sequence[str]) -> str:
    """The reason to conclude nothing from a check during which the API server was away; empty if it never was.

    A disturbance can hide what happened, and it can keep a controller from acting in time.
    """
    if not disturbances:
        return ""
    times = "once" if len(disturbances) == 1 else f"{len(disturbances)} times"
    return (
        f"The API server could not be observed, {times}; nothing follows. Repeat the check: {disturbances[0]}"
    )


def _failure(outcome: Outcome) -> str:
    failed = [each for each in outcome.assertions if not each.held]
    return f"{failed[0].name}: {failed[0].detail}" if failed else ""


def _doubt(outcome: Outcome) -> str:
    if not outcome.controls:
        return "The check has no negative control."
    silent = [each for each in outcome.controls if not each.tripped]
    if silent:
        return f'The control "{silent[0].name}" did not trip: {silent[0].failure}'
    return "" if outcome.environment else "The environment of the evidence is not known."


def claim_of(result: CheckResult, *, allow_simulated: bool) -> Claim:
    """The claim that a result allows. Only a PASS with tripped controls may become "Implemented"."""
    outcome = result.outcome
    match result.verdict:
        case Verdict.PASS if conclude(outcome).verdict is Verdict.PASS:
            return _claim_of_pass(result, allow_simulated=allow_simulated)
        case Verdict.FAIL:
            return Claim(Status.MISSING, f"The check failed: {result.reason}")
        case Verdict.NOT_APPLICABLE:
            return Claim(Status.NOT_APPLICABLE, result.reason)
        case _:
            return Claim(Status.EMPTY, f"Not verified ({result.verdict}): {result.reason}")


def _claim_of_pass(result: CheckResult, *, allow_simulated: bool) -> Claim:
    outcome = result.outcome
    summary = f"{result.reason} Environment: {outcome.environment}."
    if outcome.environment is Environment.HARDWARE:
        return Claim(Status.IMPLEMENTED, summary)
    if allow_simulated:
        return Claim(Status.IMPLEMENTED, " ".join((summary, FORCED_NOTE, *outcome.limits)))
    return Claim(Status.EMPTY, f"Not claimed: {summary} Repeat the check on hardware.")
