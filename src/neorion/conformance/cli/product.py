"""`neorion conformance product`: make, fill and lint PRODUCT.yaml."""

from pathlib import Path

import click

from neorion.conformance.cli.options import run_argument, version_option
from neorion.keel.cli import App, Command
from neorion.keel.cli.kit import Output, show_findings

product = App("product", help="Make, fill and lint PRODUCT.yaml.")
_file_argument = click.argument("file", type=click.Path(path_type=Path), default=Path("PRODUCT.yaml"))


@product.command("init")
@_file_argument
@version_option
@click.option("--force", is_flag=True, allow_from_autoenv=False, help="Replace a file that exists.")
def init_command(out: Output, file: Path, version: str, *, force: bool) -> None:
    """Write the template of a version."""
    from neorion.conformance.adapters.product_file import write_product  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.decide.product_file import blank_product  # noqa: PLC0415 -- as above
    from neorion.keel.base import Conflict  # noqa: PLC0415 -- as above

    blank = blank_product(version)
    if file.exists() and not force:
        raise Conflict(
            "conformance.product_exists",
            f"{file} exists already.",
            hint="Choose another name, or use --force.",
        )
    write_product(file, blank)
    out.say(f"{file} is the template of v{version}. Fill in its metadata.")


@product.command("fill")
@_file_argument
@click.option(
    "--run", "run", type=click.Path(path_type=Path), required=True, metavar="RUN", help="Folder of the run."
)
@click.option(
    "--allow-simulated",
    is_flag=True,
    allow_from_autoenv=False,
    help="Claim also what was shown on simulated or emulated devices; the notes say so.",
)
def fill_command(out: Output, file: Path, run: Path, *, allow_simulated: bool) -> int:
    """Write the claims that a run supports into a product, and copy its artefacts beside it."""
    import shutil  # noqa: PLC0415 -- the help does not need it

    from neorion.conformance.adapters.product_file import read_product, write_product  # noqa: PLC0415 -- as above
    from neorion.conformance.adapters.run_folder import load_run, verify_run  # noqa: PLC0415 -- as above
    from neorion.conformance.decide.product_file import filled_product  # noqa: PLC0415 -- as above

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


@product.command("lint", cls=Command)
@_file_argument
def lint_command(out: Output, file: Path) -> int:
    """Check a product as the program's validator does, offline, and more strictly."""
    from neorion.conformance.adapters.product_file import lint_context, read_raw  # noqa: PLC0415 -- the help does not need it
    from neorion.conformance.decide.lint import lint  # noqa: PLC0415 -- as above

    return show_findings(out, lint(read_raw(file), lint_context(file)))


__all__ = ["product", "run_argument"]
