"""`navarch node`: one machine's life in the fleet."""

import click

from neorion.keel.cli import App, SuggestingChoice, yes_option
from neorion.navarch.cli.options import STATES, server_option, why_option

node = App("node", help="See nodes and take them in and out.")


@node.command("list", run=".node_impl:list_command")
@click.option("--pool", default="", metavar="NAME", help="Only those of this pool.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=SuggestingChoice(STATES),
    allow_from_autoenv=False,
    metavar="STATE",
    help="Only these; may be given more than once.",
)
@click.option("--unhealthy", is_flag=True, allow_from_autoenv=False, help="Only those that are not well.")
@server_option
def list_command() -> None:
    """List the nodes."""


@node.command("describe", run=".node_impl:describe_command")
@click.argument("name")
@server_option
def describe_command() -> None:
    """Show everything about a node."""


@node.command("history", run=".node_impl:history_command")
@click.argument("name")
@click.option("--limit", default=100, type=click.IntRange(1, 500), help="The newest so many lines.")
@server_option
def history_command() -> None:
    """Tell the story of a node, also of one that is gone."""


@node.command("cordon", run=".node_impl:cordon_command")
@click.argument("name")
@why_option
@server_option
def cordon_command() -> None:
    """Give a node no new work, and leave it as it is."""


@node.command("drain", run=".node_impl:drain_command")
@click.argument("name")
@why_option
@server_option
@yes_option
def drain_command() -> None:
    """Cordon a node and ask its work to leave."""


@node.command("uncordon", run=".node_impl:uncordon_command")
@click.argument("name")
@why_option
@server_option
def uncordon_command() -> None:
    """Let a node work again; whatever was being done to it is called off."""


@node.command("replace", run=".node_impl:replace_command")
@click.argument("name")
@why_option
@server_option
@yes_option
def replace_command() -> None:
    """Replace a node in the safe order, within its pool's budgets."""


@node.command("approve", run=".node_impl:approve_command")
@click.argument("name")
@why_option
@server_option
def approve_command() -> None:
    """Approve the repair that a node waits for."""


@node.command("veto", run=".node_impl:veto_command")
@click.argument("name")
@why_option
@server_option
def veto_command() -> None:
    """Call the repair of a node off, and leave the node as it is."""
