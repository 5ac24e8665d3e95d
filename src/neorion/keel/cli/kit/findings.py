"""Findings as a command's result: what doctors, validators and checkers of laws have in common."""

from collections.abc import Sequence
from typing import Final

from neorion.keel.base import Finding, Severity
from neorion.keel.cli.exit_codes import Exit
from neorion.keel.cli.kit.output import Output
from neorion.keel.cli.kit.table import Column, Table
from neorion.keel.cli.kit.terminal import Tone

_TONES: Final = {Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.WARNING, Severity.INFO: Tone.GOOD}

FINDINGS: Final[Table[Finding]] = Table(
    (
        Column("SEVERITY", lambda found: found.severity, tone=lambda found: _TONES[found.severity]),
        Column("SUBJECT", lambda found: found.subject),
        Column("CODE", lambda found: found.code, wide=True),
        Column("FINDING", lambda found: f"{found.sentence} {found.hint}".rstrip(), wrap=True),
    ),
    name=lambda found: found.code,
    empty="No findings.",
)


def show_findings(out: Output, findings: Sequence[Finding]) -> Exit:
    """Shows them all; failed if one of them is an error."""
    out.show(findings, FINDINGS)
    return Exit.FAILED if any(found.severity is Severity.ERROR for found in findings) else Exit.OK
