"""The work of `neorion conformance report`."""

from pathlib import Path

from neorion.conformance.adapters.product_file import read_product
from neorion.conformance.adapters.run_folder import load_run, verify_run
from neorion.conformance.decide.program_form import program_report
from neorion.conformance.decide.rich_form import rich_report
from neorion.keel.cli.kit import Output


def report_command(out: Output, source: Path, form: str, file: Path | None) -> None:
    text = _program(source) if form == "program" else _rich(source)
    if file is None:
        out.text(text)
    else:
        file.write_text(text, "utf-8")
        out.say(f"The report is in {file}.")


def _program(source: Path) -> str:
    return program_report(read_product(source))


def _rich(source: Path) -> str:
    return rich_report(load_run(source), verify_run(source))
