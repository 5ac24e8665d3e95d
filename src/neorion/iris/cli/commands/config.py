"""`iris config`: checks of cluster files."""

from pathlib import Path

import click

from neorion.keel.cli import App

config = App("config", help="Check cluster files.")


@config.command("validate", run=".config_impl:validate_command", extras=("server",))
@click.argument("file", type=click.Path(path_type=Path))
def validate_command() -> None:
    """Check a cluster file. The exit code is 1 if it is invalid."""


@config.command("schema", run=".config_impl:schema_command", extras=("server",))
def schema_command() -> None:
    """Print the JSON schema of cluster files, for editors."""
