"""Simulates whole applications from a seed: one thread, virtual time, a network in memory, and injected faults.

Contains the loop, the world and its parts, and the tools that run many seeds. Application code needs no change:
it takes Clock, Rng and Ids as arguments, names its fault points, and communicates through a transport. Nothing outside
of tests and simulation commands may import this room, and nothing in it may touch a real socket, thread or clock.
"""

from neorion.keel.sim.disk import Disk
from neorion.keel.sim.explore import Report, explore, half_of, seeds
from neorion.keel.sim.faults import Crash, Delay, Fail, Faults
from neorion.keel.sim.host import Host
from neorion.keel.sim.linearizability import OperationHistory, Read, Swap, Write
from neorion.keel.sim.loop import SeededLoop, SimulationLimits
from neorion.keel.sim.network import Mailbox, Network
from neorion.keel.sim.network_links import LinkConditions, Links
from neorion.keel.sim.run import Outcome, simulate
from neorion.keel.sim.stream import Stream
from neorion.keel.sim.trace import Trace
from neorion.keel.sim.world import World

__all__ = [
    "Crash",
    "Delay",
    "Disk",
    "Fail",
    "Faults",
    "Host",
    "LinkConditions",
    "Links",
    "Mailbox",
    "Network",
    "OperationHistory",
    "Outcome",
    "Read",
    "Report",
    "SeededLoop",
    "SimulationLimits",
    "Stream",
    "Swap",
    "Trace",
    "World",
    "Write",
    "explore",
    "half_of",
    "seeds",
    "simulate",
]
