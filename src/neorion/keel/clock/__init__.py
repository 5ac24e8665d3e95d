"""Time, chance and identity: protocols, the system's, and virtual ones that repeat.

The only home of the wall clock, sleep, random numbers and new ids. `decide` imports `protocols` alone.
"""

from neorion.keel.clock.protocols import Clock, Ids, Rng
from neorion.keel.clock.system import SystemClock, SystemIds, system_rng
from neorion.keel.clock.virtual import EPOCH, SeededIds, VirtualClock, seeded_rng

__all__ = [
    "EPOCH",
    "Clock",
    "Ids",
    "Rng",
    "SeededIds",
    "SystemClock",
    "SystemIds",
    "VirtualClock",
    "seeded_rng",
    "system_rng",
]
