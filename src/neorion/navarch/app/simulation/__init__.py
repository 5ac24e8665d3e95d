"""Whole fleets under virtual time: the real control plane, fake clouds, a crowd of agents, and what goes wrong.

Here stand the fleet, its troubles, the laws that must hold in every run, and what is measured in it. What navarch decides
and does stands in its own rooms, and is the same here as anywhere; it must not know that it is simulated.
"""

from neorion.navarch.app.simulation.laws import Laws
from neorion.navarch.app.simulation.ledger import Ledger, Result
from neorion.navarch.app.simulation.nature import ILLS, Ill
from neorion.navarch.app.simulation.page import page
from neorion.navarch.app.simulation.play import measured, play
from neorion.navarch.app.simulation.report import Side, SimulationReport, summary, to_json
from neorion.navarch.app.simulation.scenario_file import ScenarioFile
from neorion.navarch.app.simulation.scene import Blow, Scene, Troubles
from neorion.navarch.app.simulation.stage import Stage

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
