"""`navarch validate`: configuration files, checked before anything is started from them."""

from pathlib import Path

import click

from neorion.keel.cli import Command


@click.command("validate", cls=Command, run=".validate_impl:validate", extras=("server", "navarch"))
@click.argument("file", type=click.Path(path_type=Path))
def validate() -> None:
    """Check a configuration file."""
