"""Silent agents: when a repair for silence may begin.

A dead agent is not a dead machine. A second witness must agree: the scheduler, which sees the machine by other means, or the
cloud. Agents that fall silent together share a cause that is rarely their machines. Their repairs wait for a person.
"""

from bisect import bisect_right

from neorion.navarch.model import EventKind, Health, Hold, HoldReason, Node, NodeId, PoolView, Repair

_OTHERS = {
    None: "no other witness says that its machine is down",
    True: "the scheduler still reaches its machine",
}


def silence_hold(repair: Repair, node: Node, view: PoolView, together: frozenset[NodeId]) -> Hold | None:
    """Return the hold of a repair for silence. A person who approves it is a witness."""
    if repair.signature != EventKind.SILENCE or repair.approved:
        return None
    pool = view.spec.name
    if node.id in together:
        return Hold(HoldReason.MASS_SILENCE, node.id, len(together), view.serving, pool=pool)
    up = view.heartbeat(node.id).machine_up
    return None if up is False else Hold(HoldReason.SECOND_WITNESS, node.id, detail=_OTHERS[up], pool=pool)


def mass_silence(view: PoolView) -> frozenset[NodeId]:
    """Nodes whose agents fell silent together, and were not released by a person since. Time alone changes nothing.

    It takes the share of the pool that makes a common cause, or all of a small pool.
    """
    cause, released = view.spec.health.cause, view.state.released
    silent = sorted(
        (node.ailment.first.ns, node.id)
        for node in view.unsettled
        if node.ailment is not None
        and node.ailment.signature == EventKind.SILENCE
        and node.ailment.result is Health.UNHEALTHY
        and (released is None or released < node.ailment.first)
    )
    enough = min(max(cause.least, view.serving * cause.share / 100), max(2, view.serving))
    began = [at for at, _ in silent]
    found: set[NodeId] = set()
    for index, at in enumerate(began):
        end = bisect_right(began, at + cause.within.ns)
        if end - index >= enough:
            found.update(node for _, node in silent[index:end])
    return frozenset(found)
