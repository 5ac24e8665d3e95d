"""The port to clouds: machines are bought by an intent, listed by their owner, and terminated.

The contract of every adapter is in `Provider`; `tests/contracts/test_provider.py` tests them. Adapters
are packages beside this one, and none depends on a buyer.
"""

from neorion.capacity.provider.errors import (
    no_capacity,
    no_machine,
    not_allowed,
    quota,
    quota_not_set,
    rate_limited,
    refused,
    unknown_outcome,
)
from neorion.capacity.provider.port import (
    Capability,
    Intent,
    IntentId,
    Machine,
    MachineId,
    MachineState,
    Offering,
    Provider,
)

__all__ = [
    "Capability",
    "Intent",
    "IntentId",
    "Machine",
    "MachineId",
    "MachineState",
    "Offering",
    "Provider",
    "no_capacity",
    "no_machine",
    "not_allowed",
    "quota",
    "quota_not_set",
    "rate_limited",
    "refused",
    "unknown_outcome",
]
