"""The hands of devservers: look at one server, decide, write what differs.

Everything that reaches the API server goes out from here. What should be is decided next door, in `decide`.
"""

from neorion.devservers.act.alerts import CARRIERS, Alerts, Errand, Way
from neorion.devservers.act.flavors import Flavors
from neorion.devservers.act.homes import Homes
from neorion.devservers.act.looks import LOOKERS, Looks
from neorion.devservers.act.mirrors import Mirrors
from neorion.devservers.act.servers import Hands, Servers

__all__ = [
    "CARRIERS",
    "LOOKERS",
    "Alerts",
    "Errand",
    "Flavors",
    "Hands",
    "Homes",
    "Looks",
    "Mirrors",
    "Servers",
    "Way",
]
