"""The most that users may have of the cluster at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quota:
    """The most that one user has at once: tasks, cores in thousandths, bytes of memory, GPUs. 0 is no limit."""

    tasks: int = 0
    cpu_milli: int = 0
    memory: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class UserQuotas:
    """Everybody's cap, and those of users who have another."""

    usual: Quota = Quota()
    users: Mapping[str, Quota] = field(default_factory=dict[str, Quota])

    def of(self, user: str) -> Quota:
        return self.users.get(user, self.usual)
