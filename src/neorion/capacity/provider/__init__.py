"""The port to clouds: machines are asked for by an intent, listed by their owner, and given back.

The promises that every cloud's adapter keeps stand on `Provider`; `tests/contracts/test_provider.py` tests them. Adapters
live in folders of their own beside this one, and none of them knows who buys.
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
