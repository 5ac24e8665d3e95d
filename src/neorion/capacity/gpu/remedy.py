"""What can be done about a sick machine, from the mildest to the hardest."""

from enum import StrEnum


class Remedy(StrEnum):
    """The rungs of the repair ladder, in order. RMA: replaced, and its host is not to be bought again."""

    NOTHING = "nothing"
    RESTART_WORKLOAD = "restart_workload"
    RESET_GPU = "reset_gpu"
    REBOOT = "reboot"
    REPLACE = "replace"
    RMA = "rma"

    @property
    def rung(self) -> int:
        return _RUNGS[self]

    @property
    def next(self) -> "Remedy":
        """One rung harder; there is nothing beyond the last."""
        return _LADDER[min(self.rung + 1, len(_LADDER) - 1)]

    @property
    def costs_the_node(self) -> bool:
        return self in (Remedy.REPLACE, Remedy.RMA)


_LADDER = tuple(Remedy)
_RUNGS = {remedy: rung for rung, remedy in enumerate(_LADDER)}
