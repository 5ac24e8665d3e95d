"""`neorion conformance report`."""

from pathlib import Path

import click

from neorion.keel.cli import Command, SuggestingChoice
from neorion.keel.cli.kit import Output


@click.command("report", cls=Command)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--form",
    type=SuggestingChoice(["program", "rich"]),
    default="program",
    help="program: PRODUCT.md of a PRODUCT.yaml; rich: HTML of a run.",
)
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where to write it, instead of printing it.",
)
def report_command(out: Output, source: Path, form: str, file: Path | None) -> None:
    """Write the report of a product or a run.

    SOURCE is a PRODUCT.yaml for the form program, and the folder of a run for the form rich.
    """
    text = _program(source) if form == "program" else _rich(source)
    if file is None:
        out.text(text)
    else:
        file.write_text(text, "utf-8")
        out.say(f"The report is in {file}.")


def _program(source: Path) -> str:
    from neorion.conformance.adapters.product_file import read_product  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.decide.program_form import program_report  # noqa: PLC0415 -- as above

    return program_report(read_product(source))


def _rich(source: Path) -> str:
    from neorion.conformance.adapters.run_folder import load_run, verify_run  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.decide.rich_form import rich_report  # noqa: PLC0415 -- as above

    return rich_report(load_run(source), verify_run(source))
