"""The work of `navarch node`."""

from neorion.keel.cli.kit import Output, confirm
from neorion.keel.clock import SystemClock
from neorion.navarch.cli.session import ask
from neorion.navarch.cli.tables import LINES, REPAIRS, HistoryRecord, NodeRecord, RepairRecord, nodes_table
from neorion.navarch.client import NavarchClient
from neorion.navarch.model.gen import navarch_pb as pb


def list_command(out: Output, pool: str, states: tuple[str, ...], *, unhealthy: bool, server: str) -> None:
    async def every(client: NavarchClient) -> list[NodeRecord]:
        return [NodeRecord.of(one) async for one in client.nodes(pool, states, unhealthy=unhealthy)]

    out.show(ask(out, server, every), nodes_table(SystemClock()))


def describe_command(out: Output, name: str, server: str) -> None:
    found = ask(out, server, lambda client: client.calls.get_node(pb.GetNodeRequest(node=name)))
    out.show_one(NodeRecord.of(found), nodes_table(SystemClock()))


def history_command(out: Output, name: str, limit: int, server: str) -> None:
    request = pb.HistoryRequest(subject=name, limit=limit)
    found = ask(out, server, lambda client: client.calls.history(request))
    out.show([HistoryRecord.of(one) for one in found.lines], LINES)


def cordon_command(out: Output, name: str, why: str, server: str) -> None:
    _order(out, server, "cordon_node", name, why)


def drain_command(out: Output, name: str, why: str, server: str, *, yes: bool) -> None:
    confirm(f"Drain {name}?", yes=yes)
    _order(out, server, "drain_node", name, why)


def uncordon_command(out: Output, name: str, why: str, server: str) -> None:
    _order(out, server, "uncordon_node", name, why)


def replace_command(out: Output, name: str, why: str, server: str, *, yes: bool) -> None:
    confirm(f"Replace {name}?", yes=yes)
    _repair(out, server, "replace_node", name, why)


def approve_command(out: Output, name: str, why: str, server: str) -> None:
    _repair(out, server, "approve_repair", name, why)


def veto_command(out: Output, name: str, why: str, server: str) -> None:
    _repair(out, server, "veto_repair", name, why)


def _order(out: Output, server: str, verb: str, name: str, why: str) -> None:
    request = pb.NodeOrder(node=name, why=why)
    found = ask(out, server, lambda client: getattr(client.calls, verb)(request))
    out.show_one(NodeRecord.of(found), nodes_table(SystemClock()))


def _repair(out: Output, server: str, verb: str, name: str, why: str) -> None:
    request = pb.NodeOrder(node=name, why=why)
    found = ask(out, server, lambda client: getattr(client.calls, verb)(request))
    out.show_one(RepairRecord.of(found), REPAIRS)
