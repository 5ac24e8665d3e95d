"""The gang of an attempt, as the controller's variables say it. Pure."""

from collections.abc import Mapping
from typing import Final, Self

from msgspec import Struct

from neorion.iris.model import AttemptId
from neorion.iris.ports import GANG_ENV

_LEADER_HOSTS: Final = ("MASTER_ADDR", "PET_MASTER_ADDR")


class Gang(Struct, frozen=True, array_like=True):
    """A gang that starts together: the attempt of its first task, and the number of its tasks."""

    first: str
    size: int

    @property
    def leader(self) -> AttemptId:
        return AttemptId(self.first)

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Self | None:
        """None for an attempt that is in no gang."""
        leader = variables.get(GANG_ENV, "")
        return cls(leader, int(variables["WORLD_SIZE"])) if leader else None


def led_from(variables: Mapping[str, str], host: str) -> dict[str, str]:
    """The same variables, with the leader found at this host instead of its worker's."""
    return {**variables, **{name: host for name in _LEADER_HOSTS if name in variables}}
