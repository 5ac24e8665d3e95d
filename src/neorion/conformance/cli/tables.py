"""The tables of results and requirements."""

from typing import Final

from neorion.conformance.decide.diff import Change
from neorion.conformance.decide.explain import Explanation, method_of
from neorion.conformance.model import CheckResult, Requirement, Verdict
from neorion.keel.cli.kit import Column, Table, Tone

_TONES: Final = {Verdict.PASS: Tone.GOOD, Verdict.FAIL: Tone.BAD, Verdict.ERROR: Tone.BAD}


def tone_of(verdict: Verdict) -> Tone:
    return _TONES.get(verdict, Tone.WARNING)


def _controls(result: CheckResult) -> str:
    controls = result.outcome.controls
    return f"{sum(each.tripped for each in controls)}/{len(controls)}" if controls else ""


RESULTS: Final[Table[CheckResult]] = Table(
    (
        Column("REQUIREMENT", lambda each: each.requirement),
        Column("LEVEL", lambda each: each.level, priority=2),
        Column("VERDICT", lambda each: each.verdict, tone=lambda each: tone_of(each.verdict)),
        Column("CONTROLS", _controls, priority=1),
        Column("ENVIRONMENT", lambda each: each.outcome.environment, priority=3),
        Column("SECONDS", lambda each: f"{each.seconds:.1f}", right=True, priority=2),
        Column("OTHER SUITES", lambda each: method_of(each.requirement).others or "not published", wide=True),
        Column("REASON", lambda each: each.reason, wrap=True),
    ),
    name=lambda each: each.requirement,
)

REQUIREMENTS: Final[Table[Requirement]] = Table(
    (
        Column("REQUIREMENT", lambda each: each.id),
        Column("LEVEL", lambda each: each.level),
        Column("CATEGORY", lambda each: each.category, priority=1),
        Column("SUMMARY", lambda each: each.summary, wrap=True),
    ),
    name=lambda each: each.id,
)

EXPLANATION: Final[Table[Explanation]] = Table(
    (
        Column("ID", lambda each: each.id),
        Column("TITLE", lambda each: each.title),
        Column(
            "LEVELS", lambda each: ", ".join(f"{version} {level}" for version, level in each.levels.items())
        ),
        Column("SUMMARY", lambda each: each.summary, wrap=True),
        Column("REQUIREMENT", lambda each: each.description, wrap=True),
        Column("CHECKS", lambda each: each.checks, wrap=True),
        Column("CONTROL", lambda each: each.control, wrap=True),
        Column("NEEDS", lambda each: each.needs, wrap=True),
        Column("ONLY HARDWARE", lambda each: each.hardware, wrap=True),
        Column("OTHER SUITES", lambda each: each.others or "not published", wrap=True),
    ),
    name=lambda each: each.id,
)

CHANGES: Final[Table[Change]] = Table(
    (
        Column("REQUIREMENT", lambda each: each.requirement),
        Column("BEFORE", lambda each: each.before),
        Column("AFTER", lambda each: each.after),
        Column("REASON", lambda each: each.reason, wrap=True),
    ),
    name=lambda each: each.requirement,
    empty="The runs agree on every requirement.",
)
