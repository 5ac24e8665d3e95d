"""Whole fleets under virtual time: the real control plane, fake clouds, a crowd of agents, and what goes wrong.

Here stand the fleet, its troubles, the laws that must hold in every run, and what is measured in it. What navarch decides
and does stands in its own rooms, and is the same here as anywhere; it must not know that it is simulated.
"""

from neorion.navarch.app.simulation.failure_modes import ILLS, Ill
from neorion.navarch.app.simulation.html_report import page
from neorion.navarch.app.simulation.invariants import Laws
from neorion.navarch.app.simulation.measurements import Ledger, Result
from neorion.navarch.app.simulation.report import Side, SimulationReport, summary, to_json
from neorion.navarch.app.simulation.runner import measured, play
from neorion.navarch.app.simulation.scenario import Blow, Scene, Troubles
from neorion.navarch.app.simulation.scenario_file import ScenarioFile
from neorion.navarch.app.simulation.simulated_fleet import Stage

__all__ = [
    "ILLS",
    "Blow",
    "Ill",
    "Laws",
    "Ledger",
    "Result",
    "ScenarioFile",
    "Scene",
    "Side",
    "SimulationReport",
    "Stage",
    "Troubles",
    "measured",
    "page",
    "play",
    "summary",
    "to_json",
]
