"""States, and the moves between them."""

from enum import StrEnum

from neorion.keel.table import TransitionTable


class NodeState(StrEnum):
    """A node serves only while ACTIVE: then the scheduler was seen to place work on it.

    UNCORDONING waits for that. SPARE is verified and waits, with nothing on it.
    """

    ORDERED = "ordered"
    BOOTING = "booting"
    VERIFYING = "verifying"
    SPARE = "spare"
    UNCORDONING = "uncordoning"
    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DRAINED = "drained"
    TERMINATING = "terminating"
    TERMINATED = "terminated"

    @property
    def coming(self) -> bool:
        return self in (NodeState.ORDERED, NodeState.BOOTING, NodeState.VERIFYING)

    @property
    def serving(self) -> bool:
        """Takes new work, or still runs old work."""
        return self in (NodeState.UNCORDONING, NodeState.ACTIVE, NodeState.CORDONED, NodeState.DRAINING)

    @property
    def open(self) -> bool:
        """May get new work: the scheduler is to place work on it, or does."""
        return self in (NodeState.UNCORDONING, NodeState.ACTIVE)

    @property
    def leaving(self) -> bool:
        return self in (NodeState.TERMINATING, NodeState.TERMINATED)


class PurchaseState(StrEnum):
    """INTENDED is durable before the cloud hears of it, and stays until the cloud has answered for certain."""

    INTENDED = "intended"
    BOUGHT = "bought"
    REFUSED = "refused"
    ABANDONED = "abandoned"


class RepairStep(StrEnum):
    """Where a repair is. A reset or reboot goes by TREATING, a replacement by BUYING and TERMINATING.

    To restart the work of a node is to drain it and let it serve again.
    """

    WAITING = "waiting"
    CORDONING = "cordoning"
    BUYING = "buying"
    DRAINING = "draining"
    TREATING = "treating"
    VERIFYING = "verifying"
    TERMINATING = "terminating"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def over(self) -> bool:
        return self in (RepairStep.DONE, RepairStep.FAILED, RepairStep.CANCELLED)


_N = NodeState
NODE = TransitionTable(
    "node",
    NodeState.ORDERED,
    {
        (_N.ORDERED, _N.BOOTING): "the cloud made the machine",
        (
            _N.ORDERED,
            _N.TERMINATED,
        ): "the cloud refused, or the order was given up before there was a machine",
        (_N.BOOTING, _N.VERIFYING): "its agent registered",
        (
            _N.BOOTING,
            _N.TERMINATING,
        ): "its agent did not register in time, it is not wanted any more, or it is gone",
        (_N.VERIFYING, _N.UNCORDONING): "verified; the scheduler is asked to place work on it",
        (_N.VERIFYING, _N.SPARE): "verified, and kept as a spare",
        (_N.VERIFYING, _N.CORDONED): "an operator keeps it out of service, or it is adopted and unhealthy",
        (_N.VERIFYING, _N.TERMINATING): "did not pass, is not wanted any more, or is gone",
        (_N.SPARE, _N.UNCORDONING): "takes a place in the pool",
        (_N.SPARE, _N.CORDONED): "sick, or held by an operator",
        (_N.SPARE, _N.TERMINATING): "not wanted any more, or gone",
        (_N.UNCORDONING, _N.ACTIVE): "the scheduler places work on it",
        (_N.UNCORDONING, _N.CORDONED): "takes no new work",
        (_N.UNCORDONING, _N.TERMINATING): "its machine is gone",
        (_N.ACTIVE, _N.UNCORDONING): "the scheduler places no work on it",
        (_N.ACTIVE, _N.CORDONED): "takes no new work",
        (_N.ACTIVE, _N.TERMINATING): "its machine is gone",
        (_N.CORDONED, _N.UNCORDONING): "is to take work again",
        (_N.CORDONED, _N.DRAINING): "its work is being moved",
        (_N.CORDONED, _N.TERMINATING): "its machine is gone",
        (_N.DRAINING, _N.DRAINED): "nothing runs on it",
        (_N.DRAINING, _N.CORDONED): "the drain was called off",
        (_N.DRAINING, _N.TERMINATING): "its machine is gone",
        (_N.DRAINED, _N.VERIFYING): "treated, to be verified again",
        (_N.DRAINED, _N.CORDONED): "kept, empty",
        (_N.DRAINED, _N.TERMINATING): "given back to its cloud, or gone",
        (_N.TERMINATING, _N.TERMINATED): "its machine is gone",
    },
)

_P = PurchaseState
PURCHASE = TransitionTable(
    "purchase",
    PurchaseState.INTENDED,
    {
        (_P.INTENDED, _P.BOUGHT): "the cloud made the machine",
        (_P.INTENDED, _P.REFUSED): "the cloud said no",
        (
            _P.INTENDED,
            _P.ABANDONED,
        ): "its outcome stayed unknown for too long; a machine that appears late is terminated",
    },
)

_R = RepairStep
REPAIR = TransitionTable(
    "repair",
    RepairStep.WAITING,
    {
        (_R.WAITING, _R.CORDONING): "admitted by its budgets",
        (_R.WAITING, _R.CANCELLED): "vetoed, or no longer needed",
        (_R.CORDONING, _R.BUYING): "cordoned; a successor comes first",
        (
            _R.CORDONING,
            _R.DRAINING,
        ): "cordoned; there is no room for a successor beside it, or none is needed",
        (_R.CORDONING, _R.TREATING): "cordoned; nothing has to be moved",
        (_R.CORDONING, _R.CANCELLED): "vetoed, or no longer needed",
        (_R.BUYING, _R.DRAINING): "its successor serves",
        (_R.BUYING, _R.CANCELLED): "vetoed, or no longer needed",
        (_R.BUYING, _R.DONE): "its machine is gone already",
        (_R.DRAINING, _R.TREATING): "empty; to be treated",
        (_R.DRAINING, _R.VERIFYING): "empty; its work starts again, and nothing is done to the machine",
        (_R.DRAINING, _R.TERMINATING): "empty; to be given back",
        (_R.DRAINING, _R.DONE): "its machine is gone already",
        (_R.DRAINING, _R.CANCELLED): "vetoed",
        (_R.TREATING, _R.VERIFYING): "the agent says that it is done",
        (_R.TREATING, _R.FAILED): "it was not done in time",
        (_R.TREATING, _R.DONE): "its machine is gone already",
        (_R.VERIFYING, _R.DONE): "healthy again",
        (_R.VERIFYING, _R.FAILED): "not healthy after the treatment",
        (_R.TERMINATING, _R.DONE): "its machine is gone",
    },
)
