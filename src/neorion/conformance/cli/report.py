"""`neorion conformance report`."""

from pathlib import Path

import click

from neorion.keel.cli import Command, SuggestingChoice


@click.command("report", cls=Command, run=".report_impl:report_command")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--form",
    type=SuggestingChoice(["program", "rich"]),
    default="program",
    help="Form: program (PRODUCT.md of a PRODUCT.yaml) or rich (HTML of a run).",
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it to this file instead of printing it.",
)
def report_command() -> None:
    """Write the report of a product or a run.

    SOURCE is a PRODUCT.yaml for the form program, and the folder of a run for the form rich.
    """
