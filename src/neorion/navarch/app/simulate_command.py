"""`navarch simulate`."""

from pathlib import Path

import click

from neorion.keel.cli import Command


@click.command("simulate", cls=Command, run=".simulate_impl:simulate", extras=("server", "navarch"))
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--seeds", type=click.IntRange(1, 10_000), help="Number of runs; else the file's.")
@click.option("--seed", type=click.IntRange(min=0), help="Only this one: to see a run again.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write everything measured here.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page with plots here.")
def simulate() -> None:
    """Run a fleet under virtual time and say how it fared."""
