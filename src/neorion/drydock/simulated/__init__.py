"""Nodes that exist only in the API server: their types, their lifecycle, and KWOK, which simulates them.

Their pods are simulated too. Real nodes are in `drydock.node`.
"""

from neorion.drydock.simulated.nodes import (
    LABEL,
    PLAYED,
    SILENCE,
    add_simulated,
    check_simulated,
    ensure_simulated,
    fail_simulated,
    remove_simulated,
    resume_kwok,
    start_kwok,
)
from neorion.drydock.simulated.stages import BOOT_TIME, EXIT_CODE, RUNS_FOR
from neorion.drydock.simulated.types import COUNT_MAX, TYPES, MachineType, SimulatedNodeGroup, machine_type

__all__ = [
    "BOOT_TIME",
    "COUNT_MAX",
    "EXIT_CODE",
    "LABEL",
    "PLAYED",
    "RUNS_FOR",
    "SILENCE",
    "TYPES",
    "MachineType",
    "SimulatedNodeGroup",
    "add_simulated",
    "check_simulated",
    "ensure_simulated",
    "fail_simulated",
    "machine_type",
    "remove_simulated",
    "resume_kwok",
    "start_kwok",
]
