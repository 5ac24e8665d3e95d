"""The nodes of one pool, kept so that a decision need not look at each of them."""

from collections import Counter, OrderedDict

from neorion.navarch.model.ids import NodeId
from neorion.navarch.model.record import Node, Origin, Placement
from neorion.navarch.model.state import NodeState


class PoolNodeIndex:
    """Index of a pool's nodes. Most nodes of a large fleet are active and healthy: they are counted, and rules read the others.

    `put` and `drop` change its contents. `move_to_end` moves a node to the end of `speakers`, so that a search for silent nodes reads
    only the first few.
    """

    __slots__ = ("nodes", "settled", "speakers", "unsettled")

    def __init__(self) -> None:
        self.nodes: dict[NodeId, Node] = {}
        self.unsettled: dict[NodeId, Node] = {}
        # How many of the others are where, and at what price.
        self.settled: Counter[Placement] = Counter()
        self.speakers: OrderedDict[NodeId, None] = OrderedDict()

    def put(self, node: Node) -> None:
        self._uncount(self.nodes.get(node.id))
        self.nodes[node.id] = node
        self.speakers.setdefault(node.id)
        if is_settled(node):
            self.unsettled.pop(node.id, None)
            self.settled[node.place] += 1
        else:
            self.unsettled[node.id] = node

    def drop(self, node: NodeId) -> None:
        self._uncount(self.nodes.pop(node, None))
        self.unsettled.pop(node, None)
        self.speakers.pop(node, None)

    def move_to_end(self, node: NodeId) -> None:
        if node in self.speakers:
            self.speakers.move_to_end(node)

    def _uncount(self, node: Node | None) -> None:
        if node is not None and is_settled(node):
            self.settled[node.place] -= 1
            if not self.settled[node.place]:
                del self.settled[node.place]


def is_settled(node: Node) -> bool:
    """Bought for its pool, serves in good health, and is to go on."""
    return (
        node.state is NodeState.ACTIVE
        and node.ailment is None
        and node.origin is Origin.BOUGHT
        and not node.spare
        and not node.retiring
    )
