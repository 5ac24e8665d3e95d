"""`navarch serve`."""

from pathlib import Path

import click

from neorion.keel.cli import Command


@click.command("serve", cls=Command, run=".serve_impl:serve", extras=("server", "navarch"))
@click.option("--config", type=click.Path(path_type=Path), required=True, help="The configuration file.")
@click.option("--log", default="people", type=click.Choice(["people", "json"]), help="Form of the log.")
def serve() -> None:
    """Run the control plane until it is told to stop."""
