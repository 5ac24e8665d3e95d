"""The work of `neorion conformance verify` and `diff`."""

from pathlib import Path

from neorion.conformance.adapters.run_folder import load_run, verify_run
from neorion.conformance.adapters.signing import signature_problems
from neorion.conformance.cli.tables import CHANGES
from neorion.conformance.decide.diff import changes_between
from neorion.keel.cli.kit import Output, show_findings


def verify_command(out: Output, run: Path, *, key: Path | None) -> int:
    findings = verify_run(run)
    if key is not None:
        findings += signature_problems(run, key)
    if not findings:
        out.say(f"{run} is complete and unchanged{f', and signed by the key {key}' if key else ''}.")
    return show_findings(out, findings)


def diff_command(out: Output, before: Path, after: Path) -> int:
    changes = list(changes_between(load_run(before), load_run(after)))
    out.show(changes, CHANGES)
    return 1 if changes else 0
