"""`navarch policy`: what a health policy makes of events, tried before it is in force."""

from pathlib import Path

import click

from neorion.keel.cli import App
from neorion.navarch.cli.options import server_option

policy = App("policy", help="Try a health policy before it is in force.")


@policy.command("test", run=".policy_impl:test_command", extras=("server", "navarch"))
@click.argument("file", type=click.Path(path_type=Path))
def test_command() -> None:
    """Run the unit tests of a policy."""


@policy.command("replay", run=".policy_impl:replay_command", extras=("server", "navarch"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="The policy to compare with; navarch's own.")
@click.option("--pool", default="", metavar="NAME", help="Only nodes of this pool.")
@server_option
def replay_command() -> None:
    """Say what a changed policy would have made of recorded events."""
