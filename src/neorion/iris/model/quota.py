"""The most that users may have of the cluster at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cap:
    """The most that one user has at once: tasks, cores in thousandths, bytes of memory, GPUs. 0 is no limit."""

    tasks: int = 0
    cpu_milli: int = 0
    memory: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Caps:
    """Everybody's cap, and those of users who have another."""

    usual: Cap = Cap()
    users: Mapping[str, Cap] = field(default_factory=dict[str, Cap])

    def of(self, user: str) -> Cap:
        return self.users.get(user, self.usual)
