"""Whole fleets under virtual time: the real control plane, fake clouds, a crowd of agents, and what goes wrong.

Here stand the fleet, its troubles, the laws that must hold in every run, and what is measured in it. What navarch decides
and does stands in its own rooms, and is the same here as anywhere; it must not know that it is simulated.
"""

from neorion.navarch.app.simulation.failure_modes import ILLS, FailureMode
from neorion.navarch.app.simulation.html_report import page
from neorion.navarch.app.simulation.invariants import InvariantChecker
from neorion.navarch.app.simulation.measurements import RunRecorder, RunResult
from neorion.navarch.app.simulation.report import SimulationReport, Variant, summary, to_json
from neorion.navarch.app.simulation.runner import run, run_measured
from neorion.navarch.app.simulation.scenario import FailureRates, PlannedFailure, Scenario
from neorion.navarch.app.simulation.scenario_file import ScenarioFile
from neorion.navarch.app.simulation.simulated_fleet import SimulatedFleet

__all__ = [
    "ILLS",
    "FailureMode",
    "FailureRates",
    "InvariantChecker",
    "PlannedFailure",
    "RunRecorder",
    "RunResult",
    "Scenario",
    "ScenarioFile",
    "SimulatedFleet",
    "SimulationReport",
    "Variant",
    "page",
    "run",
    "run_measured",
    "summary",
    "to_json",
]
