"""`navarch pool`: nodes of one shape."""

import click

from neorion.keel.cli import App
from neorion.navarch.cli.options import server_option, why_option

pool = App("pool", help="See pools and change their size.")


@pool.command("list", run=".pool_impl:list_command")
@server_option
def list_command() -> None:
    """List the pools."""


@pool.command("describe", run=".pool_impl:describe_command")
@click.argument("name")
@server_option
def describe_command() -> None:
    """Show everything about a pool."""


@pool.command("scale", run=".pool_impl:scale_command")
@click.argument("name")
@click.argument("nodes", type=click.IntRange(min=0))
@why_option
@server_option
def scale_command() -> None:
    """Let a pool have so many nodes."""


@pool.command("pause", run=".pool_impl:pause_command")
@click.argument("name")
@why_option
@server_option
def pause_command() -> None:
    """Buy nothing, give nothing back and repair nothing in a pool."""


@pool.command("release", run=".pool_impl:release_command")
@click.argument("name")
@why_option
@server_option
def release_command() -> None:
    """Let repairs begin that wait because many agents fell silent together."""


@pool.command("readmit", run=".pool_impl:readmit_command")
@click.argument("name")
@click.argument("machine")
@why_option
@server_option
def readmit_command() -> None:
    """Let an adopted machine that was replaced join again."""


@pool.command("resume", run=".pool_impl:resume_command")
@click.argument("name")
@server_option
def resume_command() -> None:
    """Let a paused pool go on."""
