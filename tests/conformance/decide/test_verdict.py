"""Only a PASS whose controls tripped may become "Implemented"."""

import hypothesis
from hypothesis import strategies as st

from neorion.conformance.decide.verdict import FORCED_NOTE, claim_of, conclude, control_of, disturbed
from neorion.conformance.model import Assertion, CheckResult, Control, Environment, Outcome, Status, Verdict

HELD, FAILED = Assertion("a", held=True), Assertion("b", held=False, detail="3 of 4")
TRIPPED, SILENT = Control("c", tripped=True), Control("d", tripped=False)
HARDWARE = Environment.HARDWARE


def verdict(**fields: object) -> Verdict:
    return conclude(Outcome(**fields)).verdict  # pyright: ignore[reportArgumentType] -- of the fields' own types


def result(outcome: Outcome) -> CheckResult:
    found, reason = conclude(outcome)
    return CheckResult("gang_scheduling", "MUST", found, reason, outcome)


def test_assertions_that_hold_and_controls_that_trip_are_a_pass():
    assert verdict(environment=HARDWARE, assertions=(HELD,), controls=(TRIPPED,)) is Verdict.PASS


def test_a_control_that_does_not_trip_leaves_nothing_proven():
    assert (
        verdict(environment=HARDWARE, assertions=(HELD,), controls=(TRIPPED, SILENT)) is Verdict.INCONCLUSIVE
    )


def test_no_control_is_no_proof():
    assert verdict(environment=HARDWARE, assertions=(HELD,)) is Verdict.INCONCLUSIVE


def test_a_failed_assertion_fails_whatever_the_controls_did():
    assert verdict(environment=HARDWARE, assertions=(HELD, FAILED), controls=(SILENT,)) is Verdict.FAIL


def test_no_assertion_is_an_error():
    assert verdict(environment=HARDWARE, controls=(TRIPPED,)) is Verdict.ERROR


def test_what_kept_the_check_from_running_is_said():
    assert verdict(missing="no Kueue") is Verdict.SKIP
    assert verdict(absent="no autoscaler") is Verdict.NOT_APPLICABLE
    assert verdict(unknown="no profile") is Verdict.UNKNOWN


def test_nothing_follows_from_a_check_that_was_disturbed():
    away = disturbed(["The server is away.", "It is away again."])
    assert "2 times" in away
    for observed in ((HELD,), (HELD, FAILED)):
        outcome = Outcome(HARDWARE, observed, (TRIPPED,), disturbed=away)
        assert conclude(outcome) == (Verdict.ERROR, away)
        assert claim_of(result(outcome), allow_simulated=True).status is Status.EMPTY
    assert disturbed([]) == ""


def test_a_control_trips_by_the_failure_of_the_same_assertion():
    assert control_of("c", FAILED) == Control("c", tripped=True, failure="3 of 4")
    assert not control_of("c", HELD).tripped


def test_hardware_is_claimed_and_simulation_only_when_forced():
    passed = (HELD,), (TRIPPED,)
    on_hardware = result(Outcome(HARDWARE, *passed))
    simulated = result(Outcome(Environment.SIMULATED, *passed))
    assert claim_of(on_hardware, allow_simulated=False).status is Status.IMPLEMENTED
    assert claim_of(simulated, allow_simulated=False).status is Status.EMPTY
    forced = claim_of(simulated, allow_simulated=True)
    assert forced.status is Status.IMPLEMENTED
    assert FORCED_NOTE in forced.notes


outcomes = st.builds(
    Outcome,
    environment=st.sampled_from([None, *Environment]),
    assertions=st.lists(st.sampled_from([HELD, FAILED]), max_size=3).map(tuple),
    controls=st.lists(st.sampled_from([TRIPPED, SILENT]), max_size=3).map(tuple),
    missing=st.sampled_from(["", "x"]),
    absent=st.sampled_from(["", "x"]),
    unknown=st.sampled_from(["", "x"]),
)


@hypothesis.given(outcomes, st.sampled_from(list(Verdict)), st.booleans())
def test_nothing_else_ever_becomes_implemented(outcome: Outcome, written: Verdict, allowed: bool):  # noqa: FBT001 -- hypothesis gives it
    """Also where a results file says PASS and its observations do not."""
    claimed = claim_of(CheckResult("x", "MUST", written, "", outcome), allow_simulated=allowed)
    if claimed.status is Status.IMPLEMENTED:
        assert written is Verdict.PASS
        assert all(each.held for each in outcome.assertions)
        assert outcome.controls
        assert all(each.tripped for each in outcome.controls)
        assert allowed or outcome.environment is HARDWARE
