"""Remedies for a faulty machine, from the mildest to the strongest."""

from enum import StrEnum


class Remedy(StrEnum):
    """The steps of the repair ladder, in order. RMA: replaced, and its host is not bought again."""

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
        """The next stronger step; the last one has none."""
        return _LADDER[min(self.rung + 1, len(_LADDER) - 1)]

    @property
    def costs_the_node(self) -> bool:
        return self in (Remedy.REPLACE, Remedy.RMA)


_LADDER = tuple(Remedy)
_RUNGS = {remedy: rung for rung, remedy in enumerate(_LADDER)}
