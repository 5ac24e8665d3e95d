"""Which rung of the repair ladder comes next for a node, and which hosts are not worth another purchase."""

from collections import Counter
from collections.abc import Iterable

from neorion.capacity.gpu import Remedy
from neorion.keel.base import Instant
from neorion.navarch.model import Ailment, Hold, HoldReason, Node, Repair, RepairStep
from neorion.navarch.model.spec import RepairLadder


def next_remedy(
    node: Node, ailment: Ailment, past: Iterable[Repair], ladder: RepairLadder, now: Instant
) -> Remedy:
    """The policy's remedy, or a harder one after enough tries. Never a remedy for an application's error."""
    remedy = ailment.remedy
    if remedy is Remedy.NOTHING or ailment.is_the_workloads:
        return remedy
    history = list(past)
    tried = Counter(repair.remedy for repair in _tried(node, history, ladder, now))
    while not remedy.costs_the_node and tried[remedy] >= ladder.tries:
        remedy = remedy.next
    if not remedy.costs_the_node and tried.total() >= ladder.most:
        remedy = Remedy.REPLACE
    if remedy is Remedy.REPLACE and node.host and _cost(node.host, history, ladder, now) >= ladder.lemon - 1:
        return Remedy.RMA
    return remedy


def resting(
    node: Node, remedy: Remedy, past: Iterable[Repair], ladder: RepairLadder, now: Instant
) -> Hold | None:
    """A node that was just treated is given time to show whether it helped; a replacement helps at once.

    What does not help against an application's error is not tried for ever, and nothing harder is either.
    """
    if remedy.costs_the_node:
        return None
    tried = _tried(node, past, ladder, now)
    times = sum(repair.remedy is remedy for repair in tried)
    if node.ailment is not None and node.ailment.is_the_workloads and times >= ladder.tries:
        return Hold(HoldReason.ATTEMPTS, node.id, have=times, most=ladder.tries)
    ended = [repair.ended for repair in tried if repair.ended is not None]
    if not ended:
        return None
    until = max(ended) + ladder.pause
    return Hold(HoldReason.COOL_DOWN, node.id, until=until) if now < until else None


def lemons(past: Iterable[Repair], ladder: RepairLadder, now: Instant) -> frozenset[str]:
    """Hosts that cost so many nodes that another purchase on them would be wasted."""
    costs = Counter(repair.host for repair in past if repair.host and _cost_a_node(repair, ladder, now))
    return frozenset(host for host, cost in costs.items() if cost >= ladder.lemon)


def _tried(node: Node, past: Iterable[Repair], ladder: RepairLadder, now: Instant) -> list[Repair]:
    return [
        repair
        for repair in past
        if repair.node == node.id
        and repair.step in (RepairStep.DONE, RepairStep.FAILED)
        and now.since(repair.opened) <= ladder.memory
    ]


def _cost(host: str, past: Iterable[Repair], ladder: RepairLadder, now: Instant) -> int:
    return sum(repair.host == host and _cost_a_node(repair, ladder, now) for repair in past)


def _cost_a_node(repair: Repair, ladder: RepairLadder, now: Instant) -> bool:
    return (
        repair.step is RepairStep.DONE
        and repair.remedy.costs_the_node
        and now.since(repair.opened) <= ladder.host_memory
    )
