"""`neorion conformance product`: make, fill and lint PRODUCT.yaml."""

from pathlib import Path

import click

from neorion.conformance.cli.options import run_argument, version_option
from neorion.keel.cli import App, Command

product = App("product", help="Make, fill and lint PRODUCT.yaml.")
_file_argument = click.argument("file", type=click.Path(path_type=Path), default=Path("PRODUCT.yaml"))


@product.command("init", run=".product_impl:init_command")
@_file_argument
@version_option
@click.option("--force", is_flag=True, allow_from_autoenv=False, help="Replace a file that exists.")
def init_command() -> None:
    """Write the template of a version."""


@product.command("fill", run=".product_impl:fill_command")
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
def fill_command() -> None:
    """Write the claims that a run supports into a product, and copy its artefacts beside it."""


@product.command("lint", cls=Command, run=".product_impl:lint_command")
@_file_argument
def lint_command() -> None:
    """Check a product as the program's validator does, offline, and more strictly."""


__all__ = ["product", "run_argument"]
