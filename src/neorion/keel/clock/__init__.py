"""Time, chance and identity: protocols, the system's, and virtual ones that repeat.

The only home of the wall clock, sleep, random numbers, new ids, and of the points where a simulation lets things fail.
`decide` imports `protocols` alone.
"""

from neorion.keel.clock.fault_points import fault_point
from neorion.keel.clock.protocols import Clock, Ids, Rng
from neorion.keel.clock.steady import SteadyClock
from neorion.keel.clock.system import SystemClock, SystemIds, system_rng
from neorion.keel.clock.ulid import born
from neorion.keel.clock.virtual import EPOCH, SeededIds, VirtualClock, seeded_rng

__all__ = [
    "EPOCH",
    "Clock",
    "Ids",
    "Rng",
    "SeededIds",
    "SteadyClock",
    "SystemClock",
    "SystemIds",
    "VirtualClock",
    "born",
    "fault_point",
    "seeded_rng",
    "system_rng",
]
