"""`neorion conformance verify` and `diff`."""

from pathlib import Path

import click

from neorion.conformance.cli.options import run_argument
from neorion.keel.cli import Command


@click.command("verify", cls=Command, run=".evidence_impl:verify_command")
@run_argument
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Public key of the person who must have signed the run.",
)
def verify_command() -> None:
    """Verify the evidence of a run: hashes, seal, artefacts and verdicts, and with --key who signed it."""


@click.command("diff", cls=Command, run=".evidence_impl:diff_command")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def diff_command() -> None:
    """Compare two runs. Exits with 1 if they disagree."""
