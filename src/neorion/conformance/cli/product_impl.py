"""The work of `neorion conformance product`."""

import shutil
from pathlib import Path

from neorion.conformance.adapters.product_file import lint_context, read_product, read_raw, write_product
from neorion.conformance.adapters.run_folder import load_run, verify_run
from neorion.conformance.decide.lint import lint
from neorion.conformance.decide.product_file import blank_product, filled_product
from neorion.keel.base import Conflict
from neorion.keel.cli.kit import Output, show_findings


def init_command(out: Output, file: Path, version: str, *, force: bool) -> None:
    blank = blank_product(version)
    if file.exists() and not force:
        raise Conflict(
            "conformance.product_exists",
            f"{file} exists already.",
            hint="Choose another name, or use --force.",
        )
    write_product(file, blank)
    out.say(f"{file} is the template of v{version}. Fill in its metadata.")


def fill_command(out: Output, file: Path, run: Path, *, allow_simulated: bool) -> int:
    broken = verify_run(run)
    if broken:
        out.warn("The run cannot be trusted; nothing was written.")
        return show_findings(out, broken)
    found, known = read_product(file), load_run(run)
    folder = f"results-{known.id[-8:].lower()}"
    for result in known.results:
        source = run / result.requirement
        shutil.copytree(source, file.parent / folder / result.requirement, dirs_exist_ok=True)
    write_product(file, filled_product(found, known, folder, allow_simulated=allow_simulated))
    out.say(f"{file} holds what {run} supports. Its artefacts are in {file.parent / folder}.")
    return 0


def lint_command(out: Output, file: Path) -> int:
    return show_findings(out, lint(read_raw(file), lint_context(file)))
