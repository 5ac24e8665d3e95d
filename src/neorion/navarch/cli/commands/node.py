"""`navarch node`: one machine's life in the fleet."""

import click

from neorion.keel.cli import App, SuggestingChoice, yes_option
from neorion.keel.cli.kit import Output, confirm
from neorion.navarch.cli.options import STATES, server_option, why_option

node = App("node", help="See nodes and take them in and out.")


@node.command("list")
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
def list_command(out: Output, pool: str, states: tuple[str, ...], *, unhealthy: bool, server: str) -> None:
    """List the nodes."""
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.tables import NodeRecord, nodes_table  # noqa: PLC0415 -- as above
    from neorion.navarch.client import NavarchClient  # noqa: PLC0415 -- as above

    async def every(client: NavarchClient) -> list[NodeRecord]:
        return [NodeRecord.of(one) async for one in client.nodes(pool, states, unhealthy=unhealthy)]

    out.show(ask(out, server, every), nodes_table(SystemClock()))


@node.command("describe")
@click.argument("name")
@server_option
def describe_command(out: Output, name: str, server: str) -> None:
    """Show everything about a node."""
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.tables import NodeRecord, nodes_table  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    found = ask(out, server, lambda client: client.calls.get_node(pb.GetNodeRequest(node=name)))
    out.show_one(NodeRecord.of(found), nodes_table(SystemClock()))


@node.command("history")
@click.argument("name")
@click.option("--limit", default=100, type=click.IntRange(1, 500), help="The newest so many lines.")
@server_option
def history_command(out: Output, name: str, limit: int, server: str) -> None:
    """Tell the story of a node, also of one that is gone."""
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import LINES, HistoryRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    request = pb.HistoryRequest(subject=name, limit=limit)
    found = ask(out, server, lambda client: client.calls.history(request))
    out.show([HistoryRecord.of(one) for one in found.lines], LINES)


@node.command("cordon")
@click.argument("name")
@why_option
@server_option
def cordon_command(out: Output, name: str, why: str, server: str) -> None:
    """Give a node no new work, and leave it as it is."""
    _order(out, server, "cordon_node", name, why)


@node.command("drain")
@click.argument("name")
@why_option
@server_option
@yes_option
def drain_command(out: Output, name: str, why: str, server: str, *, yes: bool) -> None:
    """Cordon a node and ask its work to leave."""
    confirm(f"Drain {name}?", yes=yes)
    _order(out, server, "drain_node", name, why)


@node.command("uncordon")
@click.argument("name")
@why_option
@server_option
def uncordon_command(out: Output, name: str, why: str, server: str) -> None:
    """Let a node work again; whatever was being done to it is called off."""
    _order(out, server, "uncordon_node", name, why)


@node.command("replace")
@click.argument("name")
@why_option
@server_option
@yes_option
def replace_command(out: Output, name: str, why: str, server: str, *, yes: bool) -> None:
    """Replace a node in the safe order, within its pool's budgets."""
    confirm(f"Replace {name}?", yes=yes)
    _repair(out, server, "replace_node", name, why)


@node.command("approve")
@click.argument("name")
@why_option
@server_option
def approve_command(out: Output, name: str, why: str, server: str) -> None:
    """Approve the repair that a node waits for."""
    _repair(out, server, "approve_repair", name, why)


@node.command("veto")
@click.argument("name")
@why_option
@server_option
def veto_command(out: Output, name: str, why: str, server: str) -> None:
    """Call the repair of a node off, and leave the node as it is."""
    _repair(out, server, "veto_repair", name, why)


def _order(out: Output, server: str, verb: str, name: str, why: str) -> None:
    from neorion.keel.clock import SystemClock  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- as above
    from neorion.navarch.cli.tables import NodeRecord, nodes_table  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    request = pb.NodeOrder(node=name, why=why)
    found = ask(out, server, lambda client: getattr(client.calls, verb)(request))
    out.show_one(NodeRecord.of(found), nodes_table(SystemClock()))


def _repair(out: Output, server: str, verb: str, name: str, why: str) -> None:
    from neorion.navarch.cli.session import ask  # noqa: PLC0415 -- the help does not need it
    from neorion.navarch.cli.tables import REPAIRS, RepairRecord  # noqa: PLC0415 -- as above
    from neorion.navarch.model.gen import navarch_pb as pb  # noqa: PLC0415 -- as above

    request = pb.NodeOrder(node=name, why=why)
    found = ask(out, server, lambda client: getattr(client.calls, verb)(request))
    out.show_one(RepairRecord.of(found), REPAIRS)
