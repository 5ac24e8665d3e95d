"""Quotas: limits per user of what runs at once."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of one user: tasks, cores in thousandths, bytes of memory, GPUs. 0 means no limit."""

    tasks: int = 0
    cpu_milli: int = 0
    memory: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class UserQuotas:
    """Default quota, and the quotas of users with their own."""

    usual: Quota = Quota()
    users: Mapping[str, Quota] = field(default_factory=dict[str, Quota])

    def of(self, user: str) -> Quota:
        return self.users.get(user, self.usual)
