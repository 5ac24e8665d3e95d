"""`neorion conformance verify` and `diff`."""

from pathlib import Path

import click

from neorion.conformance.cli.options import run_argument
from neorion.keel.cli import Command
from neorion.keel.cli.kit import Output, show_findings


@click.command("verify", cls=Command)
@run_argument
def verify_command(out: Output, run: Path) -> int:
    """Verify the evidence of a run: hashes, seal, artefacts and verdicts."""
    from neorion.conformance.adapters.run_folder import verify_run  # noqa: PLC0415 -- the help does not need it

    findings = verify_run(run)
    if not findings:
        out.say(f"{run} is complete and unchanged.")
    return show_findings(out, findings)


@click.command("diff", cls=Command)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def diff_command(out: Output, before: Path, after: Path) -> int:
    """Compare two runs. Exits with 1 if they disagree."""
    from neorion.conformance.adapters.run_folder import load_run  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.cli.tables import CHANGES  # noqa: PLC0415 -- as above
    from neorion.conformance.decide.diff import changes_between  # noqa: PLC0415 -- as above

    changes = list(changes_between(load_run(before), load_run(after)))
    out.show(changes, CHANGES)
    return 1 if changes else 0
