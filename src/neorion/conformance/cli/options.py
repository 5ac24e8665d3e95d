"""Options that the commands share. Cheap to import."""

from pathlib import Path
from typing import Final

import click

NEWEST: Final = "1.37"
RUNS: Final = Path("conformance-runs")

version_option = click.option(
    "--version", default=NEWEST, metavar="VERSION", help="Version of the program: 1.33 to 1.37."
)
run_argument = click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
